#include "tools/cli/run_progress.h"

#include "gtest/gtest.h"

namespace mgc {
namespace {

TEST(ProgressText, SaysHowFarAndHowLong) {
  EXPECT_EQ(ProgressText(1, 100, -1), "[>                   ] 1% | step 1 of 100");
  EXPECT_EQ(ProgressText(38, 100, 62.4), "[=======>            ] 38% | step 38 of 100 | 1:02 left");
  EXPECT_EQ(ProgressText(99, 100, 3725),
            "[===================>] 99% | step 99 of 100 | 1:02:05 left");
  EXPECT_EQ(ProgressText(5, 5, 0), "[====================] 100% | step 5 of 5 | 0:00 left");
}

}  // namespace
}  // namespace mgc
