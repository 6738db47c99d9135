#include "passes/plan/place_transients.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

// Most bytes alive at one time: no placement can do with less.
int64_t LiveBytes(const std::vector<Interval>& intervals) {
  int64_t most = 0;
  for (const Interval& at : intervals) {
    int64_t live = 0;
    for (const Interval& other : intervals) {
      if (other.begin <= at.begin && at.begin <= other.end) live += other.bytes;
    }
    most = std::max(most, live);
  }
  return most;
}

void ExpectPlaced(const std::vector<Interval>& intervals) {
  int64_t total = -1;
  const std::vector<int64_t> offsets = PackIntervals(intervals, &total);
  ASSERT_EQ(offsets.size(), intervals.size());
  int64_t sum = 0;
  int64_t highest = 0;
  for (size_t i = 0; i < intervals.size(); ++i) {
    EXPECT_GE(offsets[i], 0);
    sum += intervals[i].bytes;
    highest = std::max(highest, offsets[i] + intervals[i].bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool together =
          intervals[i].begin <= intervals[j].end && intervals[j].begin <= intervals[i].end;
      const bool apart = offsets[i] + intervals[i].bytes <= offsets[j] ||
                         offsets[j] + intervals[j].bytes <= offsets[i];
      EXPECT_TRUE(apart || !together) << i << " and " << j;
    }
  }
  EXPECT_EQ(total, highest);
  EXPECT_LE(total, sum);
  EXPECT_GE(total, LiveBytes(intervals));
}

TEST(PackIntervalsTest, SmallCases) {
  int64_t total = -1;
  EXPECT_TRUE(PackIntervals({}, &total).empty());
  EXPECT_EQ(total, 0);
  // One after another: the same place; touching instructions are alive together.
  EXPECT_EQ(PackIntervals({{0, 1, 64}, {2, 3, 64}}, &total), (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(total, 64);
  EXPECT_EQ(PackIntervals({{0, 2, 64}, {2, 3, 64}}, &total), (std::vector<int64_t>{0, 64}));
  EXPECT_EQ(total, 128);
}

// A gap that is large enough is used; the larger first where that needs less.
TEST(PackIntervalsTest, GapsAreUsed) {
  int64_t total = -1;
  const std::vector<Interval> intervals = {{0, 1, 64}, {0, 4, 64}, {2, 4, 64}};
  PackIntervals(intervals, &total);
  EXPECT_EQ(total, 128);
  const std::vector<Interval> growing = {{0, 1, 64}, {1, 2, 128}, {2, 3, 192}};
  PackIntervals(growing, &total);
  EXPECT_EQ(total, LiveBytes(growing));
}

// Neither in the order of their beginnings nor by size, but with the highest of these first.
TEST(PackIntervalsTest, OrdersAreTriedUntilOneIsTheBestPossible) {
  int64_t total = -1;
  const std::vector<Interval> intervals = {{4, 5, 256}, {0, 3, 192}, {3, 4, 64}, {1, 1, 256}};
  PackIntervals(intervals, &total);
  EXPECT_EQ(total, LiveBytes(intervals));
}

TEST(PackIntervalsTest, RandomIntervalsNeverMeet) {
  constexpr uint32_t kSeed = 99;
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  std::mt19937 random(kSeed);
  for (int trial = 0; trial < 300; ++trial) {
    const int time = 1 + static_cast<int>(random() % 30);
    std::vector<Interval> intervals(1 + random() % 40);
    for (Interval& interval : intervals) {
      interval.begin = static_cast<int>(random() % time);
      interval.end = interval.begin + static_cast<int>(random() % 6);
      interval.bytes = 64 * (random() % 8);
    }
    ExpectPlaced(intervals);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace mgc
