#include "graph/types/bfloat16.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

#include "gtest/gtest.h"

namespace mgc {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float FloatOf(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

uint32_t BitsOf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

uint16_t Rounded(uint32_t bits) { return ToBfloat16(FloatOf(bits)).bits; }

TEST(Bfloat16Test, EveryPatternIsTheUpperHalfOfItsFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    ASSERT_EQ(BitsOf(ToFloat({static_cast<uint16_t>(bits)})), bits << 16);
  }
}

TEST(Bfloat16Test, EveryPatternComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float x = ToFloat({static_cast<uint16_t>(bits)});
    const uint32_t quiet = std::isnan(x) ? 0x40 : 0;
    ASSERT_EQ(ToBfloat16(x).bits, bits | quiet) << x;
  }
}

// Between two neighbours: the nearer one, the even one from the middle.
TEST(Bfloat16Test, EveryGapRoundsToTheNearest) {
  for (uint32_t sign : {0x0000u, 0x8000u}) {
    for (uint32_t magnitude = 0; magnitude < 0x7f80; ++magnitude) {  // to infinity in the last
      const uint32_t low = sign | magnitude;
      const uint32_t high = low + 1;
      const uint32_t even = low % 2 == 0 ? low : high;
      ASSERT_EQ(Rounded(low << 16 | 0x0001), low);
      ASSERT_EQ(Rounded(low << 16 | 0x7fff), low);
      ASSERT_EQ(Rounded(low << 16 | 0x8000), even);
      ASSERT_EQ(Rounded(low << 16 | 0x8001), high);
      ASSERT_EQ(Rounded(low << 16 | 0xffff), high);
    }
  }
}

// The meaning, without bits: no bf16 is nearer.
TEST(Bfloat16Test, DrawnNumbersRoundToTheNearest) {
  constexpr uint32_t kSeed = 20;
  std::mt19937 generator(kSeed);
  for (int i = 0; i < 200000; ++i) {
    const float x = FloatOf(static_cast<uint32_t>(generator()));
    const Bfloat16 y = ToBfloat16(x);
    if (!std::isfinite(ToFloat(y))) continue;
    const double error = std::fabs(double{ToFloat(y)} - x);
    for (int step : {-1, 1}) {
      const float other = ToFloat({static_cast<uint16_t>(y.bits + step)});
      if (!std::isfinite(other)) continue;
      ASSERT_LE(error, std::fabs(double{other} - x)) << x << ", seed " << kSeed;
    }
  }
}

TEST(Bfloat16Test, OverflowsToInfinity) {
  const float largest = ToFloat({0x7f7f});
  EXPECT_EQ(largest, std::ldexp(1.0f, 127) * (2 - 1.0f / 128));
  const float limit = FloatOf(0x7f7f8000);  // 2^128 - 2^119
  EXPECT_EQ(ToFloat(ToBfloat16(std::nextafter(limit, 0.0f))), largest);
  EXPECT_EQ(ToFloat(ToBfloat16(limit)), kInfinity);
  EXPECT_EQ(ToFloat(ToBfloat16(-limit)), -kInfinity);
  EXPECT_EQ(ToFloat(ToBfloat16(std::numeric_limits<float>::max())), kInfinity);
  EXPECT_EQ(ToFloat(ToBfloat16(kInfinity)), kInfinity);
  EXPECT_EQ(ToFloat(ToBfloat16(-kInfinity)), -kInfinity);
}

TEST(Bfloat16Test, DenormalsAreNumbersLikeOthers) {
  EXPECT_EQ(Rounded(0x00000001), 0x0000);
  EXPECT_EQ(Rounded(0x80000001), 0x8000);
  EXPECT_EQ(Rounded(0x00008000), 0x0000);  // the middle of 0 and the least denormal
  EXPECT_EQ(Rounded(0x00008001), 0x0001);
  EXPECT_EQ(Rounded(0x00018000), 0x0002);
  EXPECT_EQ(Rounded(0x007fffff), 0x0080);  // up to the least normal number
}

TEST(Bfloat16Test, NanStaysNan) {
  EXPECT_EQ(Rounded(0x7fc00000), 0x7fc0);
  EXPECT_EQ(Rounded(0xffc00000), 0xffc0);
  EXPECT_EQ(Rounded(0x7fd50000), 0x7fd5);  // the payload's upper bits stay
  EXPECT_EQ(Rounded(0x7f800001), 0x7fc0);  // all of its payload is in the lower half
  EXPECT_EQ(Rounded(0xff80ffff), 0xffc0);
  EXPECT_EQ(Rounded(0x7fffffff), 0x7fff);  // not rounded up into the sign
  EXPECT_EQ(Rounded(0xffffffff), 0xffff);
}

}  // namespace
}  // namespace mgc
