#include "tools/views/series.h"

#include "gtest/gtest.h"

namespace mgc {
namespace {

TEST(SeriesTest, LinesThatFollowARuleAreOne) {
  EXPECT_EQ(SeriesText("pp", {"3 x (0F0) +1 0B0", "2 x (1F0) +1 1B0", "1 x (2F0) +1 2B0", "U"}),
            "pp 0-2 (p = pp): {3-p} x ({p}F0) +1 {p}B0\n"
            "pp 3: U\n");
  EXPECT_EQ(SeriesText("pp", {"U", "0F3", "2F3", "4F3"}),
            "pp 0: U\n"
            "pp 1-3 (p = pp): {2p-2}F3\n");
  EXPECT_EQ(SeriesText("pp", {"1F", "4F", "7F"}), "pp 0-2 (p = pp): {3p+1}F\n");
}

TEST(SeriesTest, LinesThatDoNotStayAsTheyAre) {
  EXPECT_EQ(SeriesText("pp", {"0F", "1F"}), "pp 0: 0F\npp 1: 1F\n");
  EXPECT_EQ(SeriesText("pp", {"0F", "1F", "3F"}), "pp 0: 0F\npp 1: 1F\npp 2: 3F\n");
  EXPECT_EQ(SeriesText("pp", {"0F", "1F", "2B"}), "pp 0: 0F\npp 1: 1F\npp 2: 2B\n");
  EXPECT_EQ(SeriesText("pp", {}), "");
}

TEST(SeriesTest, EqualLinesHaveNoFormula) {
  EXPECT_EQ(SeriesText("pp", {"0F1", "0F1", "0F1"}), "pp 0-2 (p = pp): 0F1\n");
}

}  // namespace
}  // namespace mgc
