#include "passes/choose_cuts.h"

#include <algorithm>
#include <random>
#include <tuple>

#include "gtest/gtest.h"
#include "passes/plan/time/cost.h"

namespace mgc {
namespace {

using Tiers = std::vector<const NetworkTier*>;

// How good a choice is: its slowest piece, its bytes, its places from the last to the first.
using Rank = std::tuple<int64_t, int64_t, std::vector<size_t>>;

Rank RankOf(const std::vector<CutPlace>& places, int64_t end_ns, const Tiers& tiers,
            const std::vector<size_t>& chosen) {
  int64_t slowest = 0;
  int64_t bytes = 0;
  int64_t begin = 0;
  int64_t sent_before = 0;
  for (size_t k = 0; k <= tiers.size(); ++k) {
    const bool last = k == tiers.size();
    int64_t sent = 0;
    if (!last && tiers[k] != nullptr) sent = TransferNs(*tiers[k], places[chosen[k]].bytes);
    const int64_t end = last ? end_ns : places[chosen[k]].ns;
    slowest = std::max(slowest, end - begin + sent_before + sent);
    if (!last) bytes += places[chosen[k]].bytes;
    begin = end;
    sent_before = sent;
  }
  return {slowest, bytes, {chosen.rbegin(), chosen.rend()}};
}

Rank BestOfAll(const std::vector<CutPlace>& places, int64_t end_ns, const Tiers& tiers) {
  std::vector<bool> taken(places.size(), false);
  std::fill(taken.begin(), taken.begin() + static_cast<int64_t>(tiers.size()), true);
  Rank best{kMaxNs * 2, 0, {}};
  do {
    std::vector<size_t> chosen;
    for (size_t p = 0; p < places.size(); ++p) {
      if (taken[p]) chosen.push_back(p);
    }
    best = std::min(best, RankOf(places, end_ns, tiers, chosen));
  } while (std::prev_permutation(taken.begin(), taken.end()));
  return best;
}

// A nanosecond a byte and 3 ns, or 5 ns a byte and 11 ns.
const NetworkTier kNear = {"near", 8, 1e9, 1.0, 3e-9};
const NetworkTier kFar = {"far", kAnyRanks, 2e8, 1.0, 11e-9};

TEST(ChooseCutsTest, IsTheBestOfAllChoices) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&random](unsigned n) { return static_cast<int64_t>(random() % n); };
    std::vector<CutPlace> places(static_cast<size_t>(1 + below(9)));
    int64_t ns = 0;
    for (CutPlace& place : places) place = {ns += below(12), below(8)};  // with many equals
    Tiers tiers(static_cast<size_t>(1 + below(static_cast<unsigned>(places.size()))));
    for (const NetworkTier*& tier : tiers) {
      const int64_t kind = below(3);
      tier = kind == 0 ? nullptr : kind == 1 ? &kNear : &kFar;
    }
    const int64_t end_ns = ns + below(12);
    EXPECT_EQ(RankOf(places, end_ns, tiers, ChooseCuts(places, end_ns, tiers)),
              BestOfAll(places, end_ns, tiers));
  }
}

TEST(ChooseCutsTest, NoCut) { EXPECT_TRUE(ChooseCuts({{1, 1}, {2, 1}}, 3, {}).empty()); }

// To look at all pairs of places takes minutes.
TEST(ChooseCutsTest, OfManyPlacesManyCuts) {
  constexpr size_t kPlaces = 60'000;
  constexpr size_t kCuts = 99;
  std::vector<CutPlace> places;
  for (size_t p = 0; p < kPlaces; ++p) {
    places.push_back({static_cast<int64_t>(1000 * (p + 1)), p % 10 == 9 ? 1 : 100});
  }
  const std::vector<size_t> chosen = ChooseCuts(places, 1000 * (kPlaces + 1), Tiers(kCuts, &kNear));
  ASSERT_EQ(chosen.size(), kCuts);
  for (size_t k = 0; k < kCuts; ++k) {
    EXPECT_EQ(chosen[k] % 10, 9u);
    EXPECT_NEAR(static_cast<double>(chosen[k]), 600.0 * static_cast<double>(k + 1), 400);
  }
}

TEST(ChooseCutsTest, TimesAtTheirBounds) {
  const std::vector<CutPlace> places = {{0, kMaxNs}, {kMaxNs / 4, kMaxNs}};
  EXPECT_EQ(ChooseCuts(places, kMaxNs / 4, Tiers(2, &kFar)), (std::vector<size_t>{0, 1}));
}

}  // namespace
}  // namespace mgc
