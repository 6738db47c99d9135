#include "graph/types/float16.h"

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

// What a pattern means, by the definition of the format; NaN apart.
double MeaningOf(uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 0x1f);
  const double fraction = bits & 0x3ff;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 0x1f) return sign * kInfinity;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

bool IsNan(uint32_t bits) { return (bits & 0x7fff) > 0x7c00; }

TEST(Float16Test, EveryPatternIsTheNumberOfItsBits) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float x = ToFloat(Float16{static_cast<uint16_t>(bits)});
    if (IsNan(bits)) {
      ASSERT_EQ(BitsOf(x), (bits & 0x8000) << 16 | 0x7fc00000 | (bits & 0x3ff) << 13);
    } else {
      ASSERT_EQ(double{x}, MeaningOf(bits)) << bits;
      ASSERT_EQ(std::signbit(x), bits >= 0x8000) << bits;
    }
  }
}

TEST(Float16Test, EveryPatternComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const uint32_t quiet = IsNan(bits) ? 0x200 : 0;
    ASSERT_EQ(ToFloat16(ToFloat(Float16{static_cast<uint16_t>(bits)})).bits, bits | quiet);
  }
}

// Between two neighbours: the nearer one, the even one from the middle. Beyond the largest the next
// one would be 2^16.
TEST(Float16Test, EveryGapRoundsToTheNearest) {
  for (uint32_t sign : {0x0000u, 0x8000u}) {
    for (uint32_t magnitude = 0; magnitude < 0x7c00; ++magnitude) {
      const uint32_t low = sign | magnitude;
      const uint32_t high = low + 1;
      const uint32_t even = low % 2 == 0 ? low : high;
      const double next =
          magnitude == 0x7bff ? std::copysign(65536.0, MeaningOf(low)) : MeaningOf(high);
      const float middle = static_cast<float>((MeaningOf(low) + next) / 2);
      ASSERT_EQ(ToFloat16(middle).bits, even);
      ASSERT_EQ(ToFloat16(std::nextafter(middle, static_cast<float>(MeaningOf(low)))).bits, low);
      ASSERT_EQ(ToFloat16(std::nextafter(middle, static_cast<float>(next))).bits, high);
      ASSERT_EQ(
          ToFloat16(std::nextafter(ToFloat(Float16{static_cast<uint16_t>(low)}), middle)).bits,
          low);
    }
  }
}

// The meaning, without bits: no f16 is nearer.
TEST(Float16Test, DrawnNumbersRoundToTheNearest) {
  constexpr uint32_t kSeed = 21;
  std::mt19937 generator(kSeed);
  std::uniform_int_distribution<uint32_t> exponent(127 - 30, 127 + 16);
  for (int i = 0; i < 200000; ++i) {
    const uint32_t drawn = static_cast<uint32_t>(generator());
    const float x = FloatOf((drawn & 0x807fffff) | exponent(generator) << 23);
    const Float16 y = ToFloat16(x);
    if (!std::isfinite(ToFloat(y))) continue;
    const double error = std::fabs(double{ToFloat(y)} - x);
    for (int step : {-1, 1}) {
      const float other = ToFloat(Float16{static_cast<uint16_t>(y.bits + step)});
      if (!std::isfinite(other)) continue;
      ASSERT_LE(error, std::fabs(double{other} - x)) << x << ", seed " << kSeed;
    }
  }
}

TEST(Float16Test, OverflowsToInfinity) {
  const float limit = 65520;
  EXPECT_EQ(ToFloat(ToFloat16(std::nextafter(limit, 0.0f))), 65504.0f);
  EXPECT_EQ(ToFloat(ToFloat16(limit)), kInfinity);
  EXPECT_EQ(ToFloat(ToFloat16(-limit)), -kInfinity);
  EXPECT_EQ(ToFloat(ToFloat16(std::numeric_limits<float>::max())), kInfinity);
  EXPECT_EQ(ToFloat(ToFloat16(kInfinity)), kInfinity);
  EXPECT_EQ(ToFloat(ToFloat16(-kInfinity)), -kInfinity);
}

TEST(Float16Test, SmallNumbersLoseBitsAndBecomeZero) {
  EXPECT_EQ(ToFloat16(0x1p-24f).bits, 0x0001);
  EXPECT_EQ(ToFloat16(0x1p-25f).bits, 0x0000);  // the middle of 0 and the least denormal
  EXPECT_EQ(ToFloat16(0x1.000002p-25f).bits, 0x0001);
  EXPECT_EQ(ToFloat16(-0x1p-26f).bits, 0x8000);
  EXPECT_EQ(ToFloat16(0x1.ffep-15f).bits, 0x0400);  // up to the least normal number
  EXPECT_EQ(ToFloat16(std::numeric_limits<float>::denorm_min()).bits, 0x0000);
}

TEST(Float16Test, NanStaysNan) {
  EXPECT_EQ(ToFloat16(FloatOf(0x7fc00000)).bits, 0x7e00);
  EXPECT_EQ(ToFloat16(FloatOf(0xffc00000)).bits, 0xfe00);
  EXPECT_EQ(ToFloat16(FloatOf(0x7fd54000)).bits, 0x7eaa);  // the payload's upper bits stay
  EXPECT_EQ(ToFloat16(FloatOf(0x7f800001)).bits, 0x7e00);  // all of its payload is lost
  EXPECT_EQ(ToFloat16(FloatOf(0x7fffffff)).bits, 0x7fff);
  EXPECT_EQ(ToFloat16(FloatOf(0xffffffff)).bits, 0xffff);
}

}  // namespace
}  // namespace mgc
