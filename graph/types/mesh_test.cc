#include "graph/types/mesh.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/hash/hash.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using Ranks = std::vector<int64_t>;
using RankGroups = std::vector<Ranks>;

Mesh MustCreate(const std::vector<MeshAxis>& axes) {
  absl::StatusOr<Mesh> mesh = Mesh::Create(axes);
  EXPECT_TRUE(mesh.ok()) << mesh.status();
  return mesh.ok() ? *mesh : Mesh();
}

TEST(AxisSetTest, IsASetWithAscendingIteration) {
  AxisSet set = {5, 0, 3};
  set.Add(3);
  EXPECT_EQ(std::vector<AxisId>(set.begin(), set.end()), (std::vector<AxisId>{0, 3, 5}));
  EXPECT_EQ(set.size(), 3);
  EXPECT_TRUE(set.Contains(3));
  EXPECT_FALSE(set.Contains(4));
  EXPECT_FALSE(set.Contains(-1));
  EXPECT_EQ((set | AxisSet{1}) - AxisSet({0, 5}), AxisSet({1, 3}));
  EXPECT_EQ(set & AxisSet({3, 4}), AxisSet({3}));
  EXPECT_TRUE(set.ContainsAll({0, 5}));
  EXPECT_FALSE(set.ContainsAll({0, 4}));
  EXPECT_TRUE(AxisSet().empty());
  EXPECT_EQ(AxisSet::FirstN(kMaxAxes).size(), kMaxAxes);
  EXPECT_NE(absl::Hash<AxisSet>()(AxisSet{1}), absl::Hash<AxisSet>()(AxisSet{2}));
}

TEST(AxisListTest, KeepsOrder) {
  AxisList list = {4, 1};
  list.push_back(2);
  EXPECT_EQ(list.IndexOf(2), 2);
  EXPECT_EQ(list.IndexOf(3), -1);
  EXPECT_EQ(list.AsSet(), AxisSet({1, 2, 4}));
  EXPECT_NE(list, AxisList({1, 4, 2}));
  list.Remove(1);
  EXPECT_EQ(list, AxisList({4, 2}));
  list.pop_back();
  EXPECT_EQ(list, AxisList({4}));
  EXPECT_EQ(absl::Hash<AxisList>()(list), absl::Hash<AxisList>()(AxisList({4})));
}

// 24 ranks as tp 2, dp 3, pp 4, fastest first.
TEST(MeshTest, GroupsMatchTheWorkedExampleOfMegatron) {
  const Mesh mesh = MustCreate({{"tp", 2}, {"dp", 3}, {"pp", 4}});
  EXPECT_EQ(mesh.world_size(), 24);
  const RankGroups dp = mesh.Groups(mesh.Find("dp").AsSet());
  ASSERT_EQ(dp.size(), 8u);
  EXPECT_EQ(dp[0], (Ranks{0, 2, 4}));
  EXPECT_EQ(dp[1], (Ranks{1, 3, 5}));
  EXPECT_EQ(dp[2], (Ranks{6, 8, 10}));
  EXPECT_EQ(dp[7], (Ranks{19, 21, 23}));
}

TEST(MeshTest, OrderStringDecidesTheStrides) {
  const std::vector<MeshAxis> sizes = {{"tp", 2}, {"pp", 4}, {"dp", 2}};
  absl::StatusOr<Mesh> mesh = Mesh::FromOrder(kDefaultAxisOrder, sizes);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  EXPECT_EQ(mesh->Groups(mesh->Find("pp").AsSet()),
            (RankGroups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
  EXPECT_EQ(mesh->Groups(mesh->Find("tp").AsSet() | mesh->Find("pp").AsSet()),
            (RankGroups{{0, 1, 4, 5, 8, 9, 12, 13}, {2, 3, 6, 7, 10, 11, 14, 15}}));
  EXPECT_EQ(mesh->ToString(), "mesh @m [tp=2, dp=2, pp=4]");

  absl::StatusOr<Mesh> pp_first = Mesh::FromOrder("pp-tp-dp", sizes);
  ASSERT_TRUE(pp_first.ok()) << pp_first.status();
  EXPECT_EQ(pp_first->Group(0, pp_first->Find("pp").AsSet()), (Ranks{0, 1, 2, 3}));
}

TEST(MeshTest, AnAbsentAxisHasOneRank) {
  const Mesh mesh = MustCreate({{"tp", 2}, {"cp", 1}, {"dp", 2}});
  EXPECT_EQ(mesh.num_axes(), 2);
  EXPECT_TRUE(mesh.Find("cp").empty());
  EXPECT_EQ(mesh.Size(mesh.Find("cp")), 1);
  EXPECT_EQ(mesh.Groups(AxisSet()), (RankGroups{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(mesh.ToString(), "mesh @m [tp=2, dp=2]");
  EXPECT_EQ(Mesh().ToString("one"), "mesh @one []");
  EXPECT_EQ(Mesh().Groups(AxisSet()), (RankGroups{{0}}));
}

TEST(MeshTest, SplittingKeepsRanksAndGroupsOfTheWhole) {
  const Mesh whole = MustCreate({{"tp", 6}, {"dp", 4}});
  const std::vector<int64_t> sizes = {2, 3};
  absl::StatusOr<Mesh> split = whole.Split("tp", sizes);
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(split->ToString(), "mesh @m [tp.1=3, tp.0=2, dp=4]");
  const AxisList tp = split->Find("tp");
  EXPECT_EQ(tp, AxisList({1, 0}));
  EXPECT_EQ(split->Groups(tp.AsSet()), whole.Groups(whole.Find("tp").AsSet()));
  for (int64_t rank = 0; rank < 24; ++rank) {
    EXPECT_EQ(split->ShardIndex(rank, tp), rank % 6);
  }
  EXPECT_EQ(split->Group(0, split->Find("tp.0").AsSet()), (Ranks{0, 3}));
  EXPECT_EQ(split->Group(0, split->Find("tp.1").AsSet()), (Ranks{0, 1, 2}));
  EXPECT_EQ(split->GroupName(tp.AsSet()), "tp");
  EXPECT_EQ(split->GroupName(split->Find("tp.1").AsSet() | split->Find("dp").AsSet()), "tp.1-dp");
  EXPECT_EQ(split->GroupName(split->AllAxes()), "tp-dp");
  EXPECT_EQ(split->GroupName(AxisSet()), "-");
}

// The expert grid of a dense 16-rank mesh: ep takes half of dp, then cp, then tp.
TEST(MeshTest, NamedProductsPlacePiecesByShardIndex) {
  const Mesh dense = MustCreate({{"tp", 2}, {"cp", 2}, {"dp", 4}});
  const std::vector<int64_t> halves = {2, 2};
  absl::StatusOr<Mesh> split = dense.Split("dp", halves);
  ASSERT_TRUE(split.ok()) << split.status();
  const std::vector<std::string> factors = {"dp.1", "cp", "tp"};
  absl::StatusOr<Mesh> mesh = split->WithProduct("ep", factors);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  EXPECT_EQ(mesh->ToString(), "mesh @m [tp=2, cp=2, dp.1=2, dp.0=2; ep=dp.1*cp*tp]");
  const AxisList ep = mesh->Find("ep");
  EXPECT_EQ(mesh->Size(ep), 8);
  EXPECT_EQ(mesh->Group(9, ep.AsSet()), (Ranks{8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(mesh->ShardIndex(13, ep), 5);
  EXPECT_EQ(mesh->GroupName(ep.AsSet()), "ep");
  const std::vector<std::string> minor_first = {"tp", "cp"};
  absl::StatusOr<Mesh> other = mesh->WithProduct("x", minor_first);
  ASSERT_TRUE(other.ok()) << other.status();
  // Rank 1 is second on tp, the major factor of x; in the group it stands at position 1.
  EXPECT_EQ(other->ShardIndex(1, other->Find("x")), 2);
  EXPECT_EQ(other->GroupPosition(1, other->Find("x").AsSet()), 1);
}

TEST(MeshTest, SplittingRenumbersProducts) {
  const Mesh mesh = MustCreate({{"tp", 4}, {"dp", 2}});
  const std::vector<std::string> factors = {"dp", "tp"};
  absl::StatusOr<Mesh> named = mesh.WithProduct("all", factors);
  ASSERT_TRUE(named.ok()) << named.status();
  const std::vector<int64_t> sizes = {2, 2};
  absl::StatusOr<Mesh> split = named->Split("tp", sizes);
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(split->Find("all"), AxisList({2, 1, 0}));
  EXPECT_NE(*split, *named);
}

TEST(MeshTest, RefusesMalformedMeshes) {
  const auto refused = [](const std::vector<MeshAxis>& axes) { return !Mesh::Create(axes).ok(); };
  EXPECT_TRUE(refused({{"tp", 2}, {"tp", 2}}));
  EXPECT_TRUE(refused({{"tp", 2}, {"tp.0", 2}}));
  EXPECT_TRUE(refused({{"tp.0", 2}, {"tp.2", 2}}));
  EXPECT_TRUE(refused({{"tp.0", 2}, {"tp.1", 1}}));
  EXPECT_TRUE(refused({{"tp", 0}}));
  EXPECT_TRUE(refused({{"tp", -3}}));
  EXPECT_TRUE(refused({{"", 2}}));
  EXPECT_TRUE(refused({{"2p", 2}}));
  EXPECT_TRUE(refused({{"tp.01", 2}}));
  EXPECT_TRUE(refused({{"tp.", 2}}));
  EXPECT_TRUE(refused({{"a", 1 << 20}, {"b", 2}}));
  EXPECT_TRUE(refused({{"a", INT64_MAX}, {"b", INT64_MAX}}));
  std::vector<MeshAxis> many;
  for (int i = 0; i <= kMaxAxes; ++i) many.push_back({"a" + std::to_string(i), 2});
  EXPECT_TRUE(refused(many));
  many.pop_back();
  EXPECT_FALSE(refused(many));

  const std::vector<MeshAxis> sizes = {{"tp", 2}, {"dp", 2}};
  EXPECT_FALSE(Mesh::FromOrder("tp-pp", sizes).ok());
  EXPECT_FALSE(Mesh::FromOrder("tp-dp-tp", sizes).ok());
  EXPECT_FALSE(Mesh::FromOrder("", sizes).ok());
  const Mesh mesh = MustCreate(sizes);
  const std::vector<int64_t> three = {3};
  const std::vector<int64_t> one_piece = {2};
  const std::vector<std::string> twice = {"tp", "tp"};
  EXPECT_FALSE(mesh.Split("tp", three).ok());
  EXPECT_FALSE(mesh.Split("tp", one_piece).ok());
  EXPECT_FALSE(mesh.Split("pp", one_piece).ok());
  EXPECT_FALSE(mesh.WithProduct("p", twice).ok());
  EXPECT_FALSE(mesh.WithProduct("dp", {}).ok());
}

// Every subset of axes partitions the ranks, and coordinates invert, on random meshes.
TEST(MeshTest, GroupsPartitionTheRanks) {
  const uint32_t seed = 20240817;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 40; ++round) {
    std::vector<MeshAxis> axes;
    for (char c = 'a'; c < 'e'; ++c) {
      axes.push_back({std::string(1, c), static_cast<int64_t>(1 + random() % 4)});
    }
    const Mesh mesh = MustCreate(axes);
    for (int64_t rank = 0; rank < mesh.world_size(); ++rank) {
      EXPECT_EQ(mesh.RankAt(mesh.Coordinates(rank)), rank);
    }
    for (uint32_t bits = 0; bits < (1u << mesh.num_axes()); ++bits) {
      const AxisSet set = AxisSet::FromBits(bits);
      std::set<int64_t> seen;
      for (const Ranks& group : mesh.Groups(set)) {
        ASSERT_EQ(static_cast<int64_t>(group.size()), mesh.Size(set));
        ASSERT_TRUE(std::is_sorted(group.begin(), group.end()));
        for (size_t i = 0; i < group.size(); ++i) {
          ASSERT_EQ(mesh.GroupPosition(group[i], set), static_cast<int64_t>(i));
          ASSERT_EQ(mesh.Group(group[i], set), group);
        }
        seen.insert(group.begin(), group.end());
      }
      ASSERT_EQ(static_cast<int64_t>(seen.size()), mesh.world_size());
    }
  }
}

}  // namespace
}  // namespace mgc
