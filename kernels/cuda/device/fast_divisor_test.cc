#include "kernels/cuda/device/fast_divisor.h"

#include <random>

#include "gtest/gtest.h"

namespace mgc::cuda {
namespace {

void ExpectDivides(int64_t n, int64_t divisor) {
  const FastDivisor fast(divisor);
  ASSERT_EQ(fast.Quotient(n), n / divisor) << n << " by " << divisor;
  ASSERT_EQ(fast.Remainder(n), n % divisor) << n << " by " << divisor;
}

TEST(FastDivisor, AroundPowersAndLimits) {
  for (int shift = 0; shift < 40; ++shift) {
    for (int64_t off = -2; off <= 2; ++off) {
      const int64_t divisor = (int64_t{1} << shift) + off;
      if (divisor < 1) continue;
      for (int64_t n : {int64_t{0}, divisor - 1, divisor, 2 * divisor - 1, 2 * divisor,
                        (int64_t{1} << 31) - 1, int64_t{1} << 31, int64_t{1} << 40}) {
        ExpectDivides(n, divisor);
      }
    }
  }
}

TEST(FastDivisor, Drawn) {
  std::mt19937_64 draw(11);
  for (int i = 0; i < 100000; ++i) {
    const auto n = static_cast<int64_t>(draw() >> (33 + i % 20));
    const auto divisor = static_cast<int64_t>(draw() >> (33 + i % 31)) + 1;
    ExpectDivides(n, divisor);
  }
}

TEST(FastDivisor, OfNothing) { EXPECT_EQ(FastDivisor(0).divisor(), 1); }

}  // namespace
}  // namespace mgc::cuda
