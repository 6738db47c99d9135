// How rows and strips of columns are shared among threads.
#include <cstdint>

#include "gtest/gtest.h"
#include "kernels/cuda/device/row_shape.h"
#include "kernels/cuda/device/strip_shape.h"

namespace mgc::cuda {
namespace {

TEST(RowShape, EveryRowHasATeamThatFits) {
  for (int64_t groups = 1; groups <= int64_t{1} << 28; groups = groups * 2 + 1) {
    for (const int64_t rows : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{8192}}) {
      const LaunchShape shape = RowShape(rows, groups);
      EXPECT_TRUE(IsLaunchable(shape));
      EXPECT_EQ(shape.block % 32, 0);
      const int64_t of_block = IsBlockRow(groups) ? 1 : shape.block / 32;
      const int64_t teams = shape.grid_x * of_block;
      EXPECT_GE(teams, rows);
      EXPECT_LE(shape.block, kMostTeam);
    }
  }
}

// A team has no thread that has nothing to do but in its last warp, or in one of 64 threads.
TEST(RowShape, TeamsAreNoLargerThanTheirRows) {
  for (int64_t groups = 129; groups < 5000; ++groups) {
    const int64_t threads = RowShape(1, groups).block;
    EXPECT_LE(threads, groups) << groups;
    EXPECT_TRUE(threads == kMostTeam || threads * kGroupsOfThread >= groups) << groups;
  }
}

TEST(StripShape, EveryColumnIsOfOneStrip) {
  for (const int per_group : {2, 4, 8}) {
    for (int64_t cols = 1; cols < 100; ++cols) {
      const int64_t strip = int64_t{kStripGroups} * per_group;
      EXPECT_GE(StripsOf(cols, per_group) * strip, cols);
      EXPECT_LT((StripsOf(cols, per_group) - 1) * strip, cols);
    }
  }
}

TEST(StripShape, BlocksAreOfWholeWarps) {
  for (int64_t rows = 0; rows < int64_t{1} << 40; rows = rows * 2 + 1) {
    const LaunchShape shape = StripShape(3, rows, 100, 8);
    EXPECT_TRUE(IsLaunchable(shape));
    EXPECT_EQ(shape.block % 32, 0);
    EXPECT_EQ(shape.grid_x, 3 * StripsOf(100, 8));
  }
}

}  // namespace
}  // namespace mgc::cuda
