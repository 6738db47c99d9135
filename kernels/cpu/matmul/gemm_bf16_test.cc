// What products of bf16 promise beyond those of f32: one rounding of a narrow result, and at each
// level the bits that gemm.h describes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/matmul/gemm_test_util.h"

namespace mgc::cpu {
namespace {

using ToWide = ProductTypes<Bfloat16, float>;
using ToNarrow = ProductTypes<Bfloat16, Bfloat16>;

Operands<ToNarrow> Narrow(const Operands<ToWide>& x) {
  return {x.a, x.b, AllOf<Bfloat16>(x.c), x.bias};
}

void ExpectRoundedOnce(const GemmShape& s, bool bias,
                       const std::vector<SimdLevel>& levels = Levels()) {
  const Operands<ToWide> x = Draw<ToWide>(s, 3);
  for (SimdLevel level : levels) {
    SCOPED_TRACE(NameOf(level));
    SerialParallel serial;
    std::vector<float> expected = Product(serial, s, x, bias, level);
    for (float& e : expected) e = ToFloat(ToBfloat16(e));
    const std::vector<float> narrow = OverWidths(
        [&](Parallel& parallel) { return AllWide(Product(parallel, s, Narrow(x), bias, level)); });
    ASSERT_TRUE(SameBits(narrow, expected));
  }
}

TEST(GemmBf16Test, NarrowIsTheWideResultRoundedOnce) {
  for (int64_t k : {0, 1, 7, 511, 512, 513, 1023, 1024, 1025, 2100, 30001}) {
    SCOPED_TRACE(k);
    ExpectRoundedOnce(Dense(17, 53, k), false);
    ExpectRoundedOnce(Dense(17, 53, k), true);
  }
}

TEST(GemmBf16Test, SumsLargerThanTheirBlockAreRoundedOnce) {
  ExpectRoundedOnce(Dense(1030, 40, 1100), true);
  ExpectRoundedOnce(Dense(30, 1700, 1100), true);
  GemmShape by_columns = Dense(40, 1100, 1100);
  by_columns.c = TransposedStrides(40, 1100);
  ExpectRoundedOnce(by_columns, false);
  ExpectRoundedOnce(Dense(1030, 1540, 1030), false, {BestSimdLevel()});
}

// a · b + sum as vdpbf16ps: denormals count as zero and become zero.
float FusedWithoutDenormals(float a, float b, float sum) {
  const auto flushed = [](float x) {
    return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
  };
  return flushed(std::fma(flushed(a), flushed(b), flushed(sum)));
}

// An element as gemm.h describes it for a level.
float Described(std::vector<Bfloat16> a, std::vector<Bfloat16> b, SimdLevel level) {
  const bool pairs = level >= SimdLevel::kAvx512Bf16;
  const size_t block = pairs ? 1024 : 512;
  if (pairs && a.size() % 2 != 0) {
    a.push_back(ToBfloat16(0));
    b.push_back(ToBfloat16(0));
  }
  const auto at = [](const std::vector<Bfloat16>& x, size_t k) { return ToFloat(x[k]); };
  float total = 0;
  for (size_t begin = 0; begin < a.size(); begin += block) {
    float sum = 0;
    for (size_t k = begin; k < std::min(begin + block, a.size()); ++k) {
      if (pairs) {
        sum = FusedWithoutDenormals(at(a, k ^ 1), at(b, k ^ 1), sum);
      } else if (level >= SimdLevel::kAvx2) {
        sum = std::fma(at(a, k), at(b, k), sum);
      } else {
        sum += at(a, k) * at(b, k);
      }
    }
    total = begin == 0 ? sum : total + sum;
  }
  return total;
}

void ExpectDescribedBits(const std::vector<Bfloat16>& a, const std::vector<Bfloat16>& b) {
  for (SimdLevel level : Levels()) {
    SCOPED_TRACE(NameOf(level));
    SerialParallel serial;
    const Operands<ToWide> x = {a, b, {std::nanf("")}, {}};
    const GemmShape s = Dense(1, 1, static_cast<int64_t>(a.size()));
    const std::vector<float> c = Product(serial, s, x, false, level);
    EXPECT_TRUE(SameBits(c, {Described(a, b, level)}));
  }
}

TEST(GemmBf16Test, EveryLevelHasTheBitsDescribed) {
  for (int64_t k : {1, 2, 3, 100, 513, 1024, 1025, 1027, 3000}) {
    SCOPED_TRACE(k);
    ExpectDescribedBits(AllOf<Bfloat16>(Uniform(k, 21)), AllOf<Bfloat16>(Uniform(k, 22)));
  }
}

TEST(GemmBf16Test, DenormalsCountAsDescribed) {
  const auto scaled = [](int64_t n, uint32_t seed, float factor) {
    std::vector<float> x = Uniform(n, seed);
    for (float& v : x) v *= factor;
    return AllOf<Bfloat16>(x);
  };
  ExpectDescribedBits(scaled(64, 1, 1e-38f), scaled(64, 2, 1));       // operands
  ExpectDescribedBits(scaled(64, 1, 1e-20f), scaled(64, 2, 1e-20f));  // products
  ExpectDescribedBits(scaled(64, 1, 1e-38f), scaled(64, 2, 1e38f));
}

TEST(GemmBf16Test, NoElementBeyondTheLastIsRead) {
  const float inf = std::numeric_limits<float>::infinity();
  for (SimdLevel level : Levels()) {
    SCOPED_TRACE(NameOf(level));
    // Rows of three; what follows them must not be multiplied, by zero either.
    const GemmShape s = [] {
      GemmShape shape = Dense(2, 1, 3);
      shape.a = {0, 4, 1};
      shape.b = {0, 1, 3};
      return shape;
    }();
    const Operands<ToWide> x = {
        AllOf<Bfloat16>({1, 2, 3, inf, 4, 5, inf}), AllOf<Bfloat16>({1, 1, 1, inf}), {0, 0}, {}};
    SerialParallel serial;
    EXPECT_EQ(Product(serial, s, x, false, level), (std::vector<float>{6, inf}));
  }
}

TEST(GemmBf16Test, NanAndInfinityReachANarrowResult) {
  const float inf = std::numeric_limits<float>::infinity();
  for (SimdLevel level : Levels()) {
    SCOPED_TRACE(NameOf(level));
    SerialParallel serial;
    const Operands<ToNarrow> x = {AllOf<Bfloat16>({3e38f, 1, 0, -inf, std::nanf("")}),
                                  AllOf<Bfloat16>({2}),
                                  std::vector<Bfloat16>(5),
                                  {}};
    const std::vector<float> c = AllWide(Product(serial, Dense(5, 1, 1), x, false, level));
    EXPECT_EQ(c[0], inf);
    EXPECT_EQ(c[1], 2);
    EXPECT_EQ(c[2], 0);
    EXPECT_EQ(c[3], -inf);
    EXPECT_TRUE(std::isnan(c[4]));
  }
}

}  // namespace
}  // namespace mgc::cpu
