#include "graph/base/random.h"

#include <cmath>

#include "gtest/gtest.h"

namespace mgc {
namespace {

// Known answers of the Random123 library for philox4x32-10 (its other two have block numbers of 64
// bits, beyond any index).
TEST(RandomTest, AgreesWithPublishedBlocks) {
  constexpr uint32_t kZeros[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  for (uint64_t lane = 0; lane < 4; ++lane) {
    EXPECT_EQ(RandomBits(0, 0, lane), kZeros[lane]);
  }
}

TEST(RandomTest, NormalHasTheMomentsOfANormal) {
  constexpr int kDraws = 100000;
  double sum = 0, squares = 0, fourths = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = RandomNormal(7, 9, i);
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
  }
  // Five standard deviations of each estimate.
  EXPECT_NEAR(sum / kDraws, 0, 5 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 1, 5 * std::sqrt(2.0 / kDraws));
  EXPECT_NEAR(fourths / kDraws, 3, 5 * std::sqrt(96.0 / kDraws));
}

TEST(RandomTest, UniformIsTheBitsScaled) {
  EXPECT_EQ(RandomUniform(0, 0, 0), 0x6627e8d5 / 4294967296.0);
}

TEST(RandomTest, KeepsAboutTheRightShare) {
  constexpr int kDraws = 100000;
  int kept = 0;
  for (int i = 0; i < kDraws; ++i) kept += KeepBit(7, StreamOf("layers.0"), i, 0.1) ? 1 : 0;
  EXPECT_NEAR(kept, 0.9 * kDraws, 5 * 95);  // five standard deviations
}

TEST(RandomTest, ExtremeProbabilities) {
  for (uint64_t i = 0; i < 64; ++i) {
    EXPECT_TRUE(KeepBit(1, 2, i, 0.0));
    EXPECT_FALSE(KeepBit(1, 2, i, 1.0));
  }
}

}  // namespace
}  // namespace mgc
