#include "graph/verify/shrink/covering_meshes.h"

#include <algorithm>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using testing::ElementsAre;
using Meshes = std::vector<std::vector<int64_t>>;
using PairList = std::vector<std::pair<int, int>>;

constexpr SmallAxis kAxis = {3, 2};

Meshes Cover(const std::vector<SmallAxis>& axes, const PairList& pairs) {
  return CoveringMeshes(axes, pairs);
}

PairList AllPairs(int axes) {
  PairList pairs;
  for (int a = 0; a < axes; ++a) {
    for (int b = a + 1; b < axes; ++b) pairs.emplace_back(a, b);
  }
  return pairs;
}

int64_t RanksOf(const Meshes& meshes) {
  int64_t ranks = 0;
  for (const std::vector<int64_t>& mesh : meshes) {
    int64_t of_mesh = 1;
    for (int64_t size : mesh) of_mesh *= size;
    ranks += of_mesh;
  }
  return ranks;
}

void ExpectCovered(const std::vector<SmallAxis>& axes, const PairList& pairs,
                   const Meshes& meshes) {
  for (const std::vector<int64_t>& mesh : meshes) {
    ASSERT_EQ(mesh.size(), axes.size());
    EXPECT_LE(std::count_if(mesh.begin(), mesh.end(), [](int64_t size) { return size > 1; }),
              static_cast<int64_t>(kMostAxesAtOnce));
  }
  const auto in_one = [&](auto holds) { return std::any_of(meshes.begin(), meshes.end(), holds); };
  for (size_t a = 0; a < axes.size(); ++a) {
    EXPECT_TRUE(in_one([&](const auto& mesh) { return mesh[a] == axes[a].most; })) << a;
    for (size_t b = 0; b < a; ++b) {
      if (axes[a].most == axes[a].least || axes[b].most == axes[b].least) continue;
      EXPECT_TRUE(in_one([&](const auto& mesh) { return mesh[a] != mesh[b]; })) << a << " " << b;
    }
  }
  for (const auto& [a, b] : pairs) {
    const size_t first = static_cast<size_t>(a);
    const size_t second = static_cast<size_t>(b);
    EXPECT_TRUE(in_one([&](const auto& mesh) { return mesh[first] > 1 && mesh[second] > 1; }))
        << a << " " << b;
  }
}

TEST(CoveringMeshesTest, NoAxisNeedsOneMesh) {
  EXPECT_THAT(Cover({}, {}), ElementsAre(Meshes::value_type{}));
}

TEST(CoveringMeshesTest, OneAxisHasBothItsSizes) {
  EXPECT_THAT(Cover({kAxis}, {}), ElementsAre(ElementsAre(3), ElementsAre(2)));
  EXPECT_THAT(Cover({{4, 4}}, {}), ElementsAre(ElementsAre(4)));
}

TEST(CoveringMeshesTest, FewAxesAreAllThereInAll) {
  EXPECT_THAT(Cover({kAxis, {4, 2}}, {}), ElementsAre(ElementsAre(3, 2), ElementsAre(2, 4)));
  EXPECT_THAT(Cover({kAxis, kAxis, kAxis}, {}),
              ElementsAre(ElementsAre(3, 2, 3), ElementsAre(2, 3, 3)));
}

TEST(CoveringMeshesTest, RanksGrowAsPairsDo) {
  EXPECT_EQ(RanksOf(Cover(std::vector<SmallAxis>(4, kAxis), AllPairs(4))), 96);
  EXPECT_LE(RanksOf(Cover(std::vector<SmallAxis>(5, kAxis), AllPairs(5))), 160);
  EXPECT_LE(RanksOf(Cover(std::vector<SmallAxis>(6, kAxis), AllPairs(6))), 240);
}

TEST(CoveringMeshesTest, AxesThatMeetNobodyShareAMesh) {
  EXPECT_LE(Cover(std::vector<SmallAxis>(8, kAxis), {}).size(), 6u);
}

TEST(CoveringMeshesTest, CoversRandomPairs) {
  constexpr uint32_t kSeed = 20;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 500; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", round " << round);
    std::vector<SmallAxis> axes(random() % 16);
    for (SmallAxis& axis : axes) {
      const SmallAxis kinds[] = {{3, 2}, {4, 2}, {2, 2}, {8, 8}};
      axis = kinds[random() % 4];
    }
    PairList pairs;
    for (const auto& pair : AllPairs(static_cast<int>(axes.size()))) {
      if (random() % 3 == 0) pairs.push_back(pair);
    }
    ExpectCovered(axes, pairs, Cover(axes, pairs));
  }
}

}  // namespace
}  // namespace mgc
