#include "graph/types/tile_runs.h"

#include <vector>

#include "gtest/gtest.h"

namespace mgc {
namespace {

class Tilings : public testing::TestWithParam<const char*> {};

// Element by element: by dims, then by the flat piece.
TEST_P(Tilings, RunsAreTheElementsOfTheTile) {
  const Mesh mesh = *Mesh::Create({{"tp", 2}, {"dp", 3}});
  const TensorType type{DType::kF32, {{7, "vocab"}, {6, ""}, {4, ""}}};
  const Sharding sharding = *ParseSharding(GetParam(), mesh);
  Sharding flat = sharding;
  flat.storage = {};
  for (int64_t rank = 0; rank < mesh.world_size(); ++rank) {
    std::vector<int64_t> want;  // whole index by place in the tile, -1 for padding
    const std::vector<int64_t> shape = LocalShape(type, flat, mesh);
    std::vector<DimPiece> p;
    p.reserve(3);
    for (int d = 0; d < 3; ++d) p.push_back(PieceOf(type.dims[d], sharding.dims[d], mesh, rank));
    for (int64_t i = 0; i < shape[0]; ++i) {
      for (int64_t j = 0; j < shape[1]; ++j) {
        for (int64_t k = 0; k < shape[2]; ++k) {
          const bool valid = i < p[0].valid && j < p[1].valid && k < p[2].valid;
          want.push_back(valid ? ((p[0].begin + i) * 6 + p[1].begin + j) * 4 + p[2].begin + k : -1);
        }
      }
    }
    if (!sharding.storage.empty()) {
      const int64_t room = LocalElements(type, sharding, mesh);
      want.resize(static_cast<size_t>(room * mesh.Size(sharding.storage)), -1);
      const auto begin = want.begin() + mesh.ShardIndex(rank, sharding.storage) * room;
      want = std::vector<int64_t>(begin, begin + room);
    }
    std::vector<int64_t> got(want.size(), -1);
    ForEachRun(type, sharding, mesh, rank, [&](int64_t tile, int64_t whole, int64_t count) {
      ASSERT_GT(count, 0);
      for (int64_t i = 0; i < count; ++i) got.at(static_cast<size_t>(tile + i)) = whole + i;
    });
    EXPECT_EQ(got, want) << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Tilings,
                         testing::Values("-,-,-", "tp,-,-", "dp*tp,-,-", "-,tp,-", "-,dp,tp",
                                         "-,-,tp", "tp,dp,-", "-,-,-/dp", "tp,-,-/dp", "-,tp,-/dp",
                                         "-,-,-/dp*tp"));

TEST(TileRunsTest, AScalarIsOneElement) {
  const Mesh mesh = *Mesh::Create({{"tp", 2}});
  int64_t count = 0;
  ForEachRun({DType::kF32, {}}, Sharding::Whole(0), mesh, 1,
             [&](int64_t tile, int64_t whole, int64_t n) { count += n + tile + whole; });
  EXPECT_EQ(count, 1);
}

TEST(TileRunsTest, FirstReplicasHoldEveryPieceOnce) {
  const Mesh mesh = *Mesh::Create({{"tp", 2}, {"dp", 3}});
  const Sharding sharding = *ParseSharding("tp,-", mesh);
  std::vector<int64_t> first;
  for (int64_t rank = 0; rank < 6; ++rank) {
    if (IsFirstReplica(sharding, {}, mesh, rank)) first.push_back(rank);
  }
  EXPECT_EQ(first, (std::vector<int64_t>{0, 1}));
  AxisSet dp;
  dp.Add(mesh.FindAtomic("dp"));
  EXPECT_TRUE(IsFirstReplica(sharding, dp, mesh, 4));
}

}  // namespace
}  // namespace mgc
