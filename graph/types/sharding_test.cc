#include "graph/types/sharding.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

// Axes: tp = 0, dp = 1.
Mesh TestMesh() { return Mesh::Create({{"tp", 4}, {"dp", 2}}).value(); }

TEST(ShardingTest, LocalSizeRoundsUpToWholeMultiples) {
  const Mesh mesh = TestMesh();
  EXPECT_EQ(LocalSize({8, "seq"}, {}, mesh), 8);
  EXPECT_EQ(LocalSize({8, "seq"}, {0}, mesh), 2);
  EXPECT_EQ(LocalSize({8, "seq"}, {0, 1}, mesh), 1);
  EXPECT_EQ(LocalSize({257, "vocab"}, {0}, mesh), 65);
  EXPECT_EQ(LocalSize({257, "vocab", 128}, {0}, mesh), 128);
  EXPECT_EQ(LocalSize({257, "vocab", 128}, {}, mesh), 384);
}

// Rows `vocabulary divisible-by tp padded` of Megatron's padding (tests/data/README.md).
TEST(ShardingTest, LocalSizePadsAVocabularyAsMegatronDoes) {
  const absl::StatusOr<std::string> vectors = ReadFile("tests/data/vocab_padding.txt");
  ASSERT_TRUE(vectors.ok()) << vectors.status();
  const std::vector<std::string> rows = absl::StrSplit(*vectors, '\n', absl::SkipEmpty());
  EXPECT_EQ(rows.size(), 83u);
  for (const std::string& row : rows) {
    SCOPED_TRACE(row);
    std::vector<int64_t> fields;
    for (absl::string_view field : absl::StrSplit(row, ' ')) {
      ASSERT_TRUE(absl::SimpleAtoi(field, &fields.emplace_back()));
    }
    ASSERT_EQ(fields.size(), 4u);
    const Mesh mesh = Mesh::Create({{"tp", fields[2]}}).value();
    const AxisList axes = mesh.num_axes() == 0 ? AxisList{} : AxisList{0};
    EXPECT_EQ(LocalSize({fields[0], "vocab", fields[1]}, axes, mesh) * fields[2], fields[3]);
  }
}

TEST(ShardingTest, StorageAxesMakeOneFlatPiece) {
  const Mesh mesh = TestMesh();
  const TensorType type{DType::kF32, {{3, "a"}, {8, "b"}}};
  Sharding sharding = Sharding::Whole(2);
  sharding.dims[1] = {0};
  EXPECT_EQ(LocalShape(type, sharding, mesh), (std::vector<int64_t>{3, 2}));
  sharding.storage = {1};
  EXPECT_EQ(LocalShape(type, sharding, mesh), (std::vector<int64_t>{3}));
  EXPECT_EQ(LocalElements(type, sharding, mesh), 3);
}

TEST(ShardingTest, PiecesCoverAnUnevenDimOnce) {
  const Mesh mesh = TestMesh();
  const Dim dim{9, "vocab"};
  int64_t next = 0;
  for (int64_t rank = 0; rank < 4; ++rank) {
    const DimPiece piece = PieceOf(dim, {0}, mesh, rank);
    EXPECT_EQ(piece.room, 3);
    EXPECT_EQ(piece.valid, rank < 3 ? 3 : 0);
    EXPECT_EQ(piece.begin, 3 * rank);
    next += piece.valid;
  }
  EXPECT_EQ(next, 9);
}

TEST(ShardingTest, MajorAxisComesFirst) {
  const Mesh mesh = TestMesh();
  // Rank 5 has coordinates tp 1, dp 1.
  EXPECT_EQ(PieceOf({16, "seq"}, {0, 1}, mesh, 5).begin, 2 * (1 * 2 + 1));
  EXPECT_EQ(PieceOf({16, "seq"}, {1, 0}, mesh, 5).begin, 2 * (1 * 4 + 1));
}

TEST(ShardingTest, ChecksAgainstTheType) {
  const Mesh mesh = TestMesh();
  const TensorType type{DType::kF32, {{6, "a"}, {8, "b"}, {7, "c"}}};
  Sharding sharding = Sharding::Whole(3);
  EXPECT_TRUE(CheckSharding(type, sharding, mesh).ok());
  sharding.dims[2] = {0};  // uneven
  EXPECT_TRUE(CheckSharding(type, sharding, mesh).ok());
  sharding.dims[1] = {0};
  EXPECT_TRUE(absl::StrContains(CheckSharding(type, sharding, mesh).message(), "sharding_c2"));
  EXPECT_TRUE(
      absl::StrContains(CheckSharding(type, Sharding::Whole(2), mesh).message(), "sharding_c1"));
  sharding = Sharding::Whole(3);
  sharding.dims[1] = {9};
  EXPECT_TRUE(absl::StrContains(CheckSharding(type, sharding, mesh).message(), "sharding_c4"));
}

TEST(ShardingTest, Prints) {
  const Mesh mesh = TestMesh();
  Sharding sharding = Sharding::Whole(3);
  EXPECT_EQ(ToString(sharding, mesh), "@m[-,-,-]");
  sharding.dims[1] = {1, 0};
  EXPECT_EQ(ToString(sharding, mesh), "@m[-,dp*tp,-]");
  sharding.dims[1] = {};
  sharding.sum = {0};
  sharding.max = {1};
  EXPECT_EQ(ToString(sharding, mesh), "@m[-,-,-]+tp^dp");
}

}  // namespace
}  // namespace mgc
