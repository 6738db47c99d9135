#include "passes/config/nearest_legal.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace mgc {
namespace {

TEST(NearestLegalTest, Multiples) {
  EXPECT_EQ(NearestMultiples(10, 4), "8, 12");
  EXPECT_EQ(NearestMultiples(12, 4), "12");
  EXPECT_EQ(NearestMultiples(3, 4), "4");
  EXPECT_EQ(NearestMultiples(-5, 4), "4");
  EXPECT_EQ(NearestMultiples(INT64_MAX, 2), "9223372036854775806");
}

TEST(NearestLegalTest, BelowAndAbove) {
  const auto divides_12 = [](int64_t n) { return 12 % n == 0; };
  EXPECT_EQ(NearestLegal(5, 12, divides_12), "4, 6");
  EXPECT_EQ(NearestLegal(20, 12, divides_12), "12");
  EXPECT_EQ(NearestLegal(0, 12, divides_12), "1");
  EXPECT_EQ(NearestLegal(5, 12, [](int64_t) { return false; }), "");
}

TEST(NearestLegalTest, SaturatingMultiply) {
  EXPECT_EQ(SaturatingMultiply(6, 7), 42);
  EXPECT_EQ(SaturatingMultiply(int64_t{1} << 40, int64_t{1} << 40), INT64_MAX);
}

}  // namespace
}  // namespace mgc
