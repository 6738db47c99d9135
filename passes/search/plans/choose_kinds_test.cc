#include "passes/search/plans/choose_kinds.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

// The least time of all ways that fit.
int64_t Least(const std::vector<KindCosts>& layers, int64_t room, size_t from = 0) {
  if (from == layers.size()) return room >= 0 ? 0 : kNone;
  int64_t least = kNone;
  for (const auto& cost : layers[from]) {
    if (!cost.has_value()) continue;
    const int64_t rest = Least(layers, room - cost->frame_bytes, from + 1);
    if (rest != kNone) least = std::min(least, rest + cost->ns);
  }
  return least;
}

int64_t BytesOf(const std::vector<KindCosts>& layers, const std::vector<RecomputeKind>& kinds) {
  int64_t bytes = 0;
  for (size_t l = 0; l < layers.size(); ++l) {
    bytes += layers[l][static_cast<size_t>(kinds[l])]->frame_bytes;
  }
  return bytes;
}

TEST(ChooseKindsTest, SavesWhereAByteCostsLeast) {
  const auto layer = [](int64_t frame, int64_t again) {
    return KindCosts{KindCost{100, frame}, absl::nullopt, KindCost{100 + again, 10}};
  };
  const std::vector<KindCosts> layers = {layer(200, 40), layer(210, 20), layer(300, 60)};
  using Kind = RecomputeKind;
  EXPECT_EQ(ChooseKinds(layers, 710).kinds, (std::vector<Kind>(3, Kind::kNone)));
  EXPECT_EQ(ChooseKinds(layers, 709).kinds,
            (std::vector<Kind>{Kind::kNone, Kind::kFull, Kind::kNone}));
  // 300 bytes less: the second saves 200, and the first is enough beside it.
  EXPECT_EQ(ChooseKinds(layers, 410).kinds,
            (std::vector<Kind>{Kind::kFull, Kind::kFull, Kind::kNone}));
  EXPECT_FALSE(ChooseKinds(layers, 29).fits);
  EXPECT_TRUE(ChooseKinds(layers, 30).fits);
}

// Within what one step more than needed may cost of all ways that fit.
TEST(ChooseKindsTest, IsNearTheLeastOfAllWays) {
  const auto seed = static_cast<uint64_t>(GTEST_FLAG_GET(random_seed));
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  const auto draw = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<KindCosts> layers(static_cast<size_t>(draw(1, 7)));
    int64_t dearest = 0;
    int64_t all = 0;
    for (KindCosts& costs : layers) {
      const int64_t ns = draw(50, 200);
      const int64_t frame = draw(100, 400);
      costs[0] = KindCost{ns, frame};
      if (draw(0, 3) > 0) costs[1] = KindCost{ns + draw(0, 30), frame - draw(0, 60)};
      costs[2] = KindCost{ns + draw(20, 70), draw(5, 30)};
      dearest = std::max(dearest, costs[2]->ns - ns);
      all += frame;
    }
    const int64_t room = draw(0, all);
    const KindsChoice choice = ChooseKinds(layers, room);
    const int64_t least = Least(layers, room);
    ASSERT_EQ(choice.fits, least != kNone);
    if (!choice.fits) continue;
    EXPECT_LE(BytesOf(layers, choice.kinds), room);
    EXPECT_GE(choice.ns, least);
    EXPECT_LE(choice.ns, least + dearest);
  }
}

}  // namespace
}  // namespace mgc
