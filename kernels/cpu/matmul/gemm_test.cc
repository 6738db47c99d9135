// Products of all element types, at every level of instructions that the machine has.
#include "kernels/cpu/matmul/gemm.h"

#include <algorithm>
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "kernels/cpu/matmul/gemm_test_util.h"
#include "kernels/cpu/test_util.h"

namespace mgc::cpu {
namespace {

template <class Types>
class GemmTest : public ::testing::Test {};

using AllTypes = ::testing::Types<ProductTypes<float, float>, ProductTypes<Bfloat16, float>,
                                  ProductTypes<Bfloat16, Bfloat16>, ProductTypes<Float16, float>,
                                  ProductTypes<Float16, Float16>>;
TYPED_TEST_SUITE(GemmTest, AllTypes);

// Relative to the largest element of a product of f32 numbers in [-1, 1).
constexpr double kTolerance = 4e-6;

// Where products are exact, a sum of k terms, bias and old value rounds k + 2 times or less, each
// time by 2^-24 of no more than the sum of all magnitudes (1.01 for what is rounded of those); then
// a narrow result once more.
void ExpectWithinRounding(const std::vector<float>& actual, const std::vector<Exact>& expected,
                          int64_t k, bool narrow) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const Exact& e = expected[i];
    const double sum = 1.01 * std::ldexp(static_cast<double>(k + 2), -24) * e.magnitude;
    const double last = narrow ? std::ldexp(std::fabs(e.value) + sum, -8) : 0;
    ASSERT_NEAR(actual[i], e.value, sum + last) << "element " << i;
  }
}

template <class Types>
void ExpectMeaning(const GemmShape& s, const std::vector<float>& actual,
                   const std::vector<Exact>& expected) {
  if constexpr (std::is_same_v<typename Types::In, float>) {
    std::vector<double> values;
    values.reserve(expected.size());
    for (const Exact& e : expected) values.push_back(e.value);
    ExpectClose(actual, values, kTolerance);
  } else {
    ExpectWithinRounding(actual, expected, s.k, Types::kNarrow);
  }
}

// The product against its meaning, with the same bits for all widths; a narrow result is never
// added to.
template <class Types>
void Check(const GemmShape& s, bool bias = false) {
  if (Types::kNarrow && s.accumulate) return;
  const Operands<Types> x = Draw<Types>(s, 17);
  const std::vector<Exact> expected = Expected(s, x, bias);
  for (SimdLevel level : Levels()) {
    SCOPED_TRACE(NameOf(level));
    const std::vector<float> c = OverWidths(
        [&](Parallel& parallel) { return AllWide(Product(parallel, s, x, bias, level)); });
    ExpectMeaning<Types>(s, c, expected);
  }
}

TYPED_TEST(GemmTest, OddSizes) {
  for (int64_t m : {1, 5, 12, 13, 64}) {
    for (int64_t n : {1, 7, 32, 33, 100}) {
      for (int64_t k : {1, 2, 31, 64}) {
        SCOPED_TRACE(std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(k));
        Check<TypeParam>(Dense(m, n, k));
      }
    }
  }
}

TYPED_TEST(GemmTest, LargerThanEveryBlock) {
  Check<TypeParam>(Dense(517, 130, 801));
  Check<TypeParam>(Dense(30, 3200, 400));
  Check<TypeParam>(Dense(20, 50, 2101));
}

// Several strips and blocks of k, with columns beyond the last whole vector.
TYPED_TEST(GemmTest, FewRows) {
  for (int64_t m : {1, 3, 6}) {
    GemmShape s = Dense(m, 1070, 1301);
    Check<TypeParam>(s, true);
    s.accumulate = true;
    Check<TypeParam>(s);
    s.b = TransposedStrides(s.k, s.n);
    Check<TypeParam>(s, true);
  }
}

TYPED_TEST(GemmTest, TransposedOperands) {
  for (int64_t m : {9, 130}) {
    for (int64_t n : {6, 257}) {
      GemmShape s = Dense(m, n, 389);
      s.a = TransposedStrides(m, s.k);
      Check<TypeParam>(s);
      s.b = TransposedStrides(s.k, n);
      Check<TypeParam>(s);
      s.a = DenseStrides(m, s.k);
      Check<TypeParam>(s);
      s.accumulate = true;
      Check<TypeParam>(s);
    }
  }
}

TYPED_TEST(GemmTest, Bias) {
  GemmShape s = Dense(37, 75, 500);
  Check<TypeParam>(s, true);
  s.accumulate = true;
  Check<TypeParam>(s, true);
}

// Over several blocks of k too.
TEST(GemmBitsTest, ABiasIsAddedToTheWholeSum) {
  for (int64_t k : {0, 3, 512, 1100}) {
    SCOPED_TRACE(k);
    const GemmShape s = Dense(14, 70, k);
    const Operands<ProductTypes<float, float>> x = Draw<ProductTypes<float, float>>(s, 5);
    for (SimdLevel level : Levels()) {
      SerialParallel serial;
      std::vector<float> expected = Product(serial, s, x, false, level);
      for (size_t i = 0; i < expected.size(); ++i) {
        expected[i] += x.bias[i % static_cast<size_t>(s.n)];
      }
      EXPECT_TRUE(SameBits(Product(serial, s, x, true, level), expected)) << NameOf(level);
    }
  }
}

TYPED_TEST(GemmTest, ResultByColumns) {
  GemmShape s = Dense(45, 70, 390);
  s.c = TransposedStrides(45, 70);
  Check<TypeParam>(s);
  s.accumulate = true;
  Check<TypeParam>(s);
  s = Dense(45, 70, 1390);
  s.c = TransposedStrides(45, 70);
  Check<TypeParam>(s);
}

TYPED_TEST(GemmTest, SlicesAndSteps) {
  GemmShape s;
  s.batch = 3;
  s.m = 20;
  s.n = 41;
  s.k = 65;
  s.a = {5000, 150, 2};
  s.b = {9000, 130, 3};
  s.c = {3000, 77, 1};
  Check<TypeParam>(s);
  s.b.batch = 0;  // one right side for all
  Check<TypeParam>(s);
}

TYPED_TEST(GemmTest, NothingToSum) {
  GemmShape s = Dense(3, 5, 0);
  Check<TypeParam>(s);
  Check<TypeParam>(s, true);
  s.accumulate = true;
  Check<TypeParam>(s);
  Check<TypeParam>(Dense(0, 5, 4));
  Check<TypeParam>(Dense(4, 0, 5));
  s = Dense(4, 3, 5);
  s.batch = 0;
  Check<TypeParam>(s);
}

TYPED_TEST(GemmTest, DrawnSizesAndStrides) {
  constexpr uint32_t kSeed = 7;
  std::mt19937 generator(kSeed);
  const auto upto = [&](int64_t most) { return static_cast<int64_t>(generator() % most) + 1; };
  // Strides of rows x cols elements, dense or with gaps, by rows or by columns.
  const auto strides = [&](int64_t rows, int64_t cols, bool steps) {
    const int64_t step = steps ? upto(3) : 1;
    const bool by_rows = generator() % 2 == 0;
    const int64_t line = (by_rows ? cols : rows) * step + upto(9) - 1;
    const int64_t all = (by_rows ? rows : cols) * line + upto(20) - 1;
    return by_rows ? GemmStrides{all, line, step} : GemmStrides{all, step, line};
  };
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", case " + std::to_string(i));
    GemmShape s;
    s.batch = upto(3);
    s.m = upto(60);
    s.n = upto(80);
    s.k = upto(i % 4 == 0 ? 1500 : 70);
    s.a = strides(s.m, s.k, true);
    s.b = strides(s.k, s.n, true);
    s.c = strides(s.m, s.n, false);
    s.accumulate = !TypeParam::kNarrow && generator() % 2 == 0;
    Check<TypeParam>(s, s.c.col == 1 && generator() % 2 == 0);
  }
}

// Every 47th row and 61st column begins a part of rows x cols, which has the bits of `all`.
template <class Types>
void ExpectPartsOf(const GemmShape& whole, const Operands<Types>& x, const std::vector<float>& all,
                   int64_t rows, int64_t cols, SimdLevel level) {
  SerialParallel serial;
  GemmShape part = whole;
  part.m = rows;
  part.n = cols;
  for (int64_t row = 0; row + rows <= whole.m; row += 47) {
    for (int64_t col = 0; col + cols <= whole.n; col += 61) {
      std::vector<float> expected = AllWide(x.c);
      for (int64_t i = row; i < row + rows; ++i) {
        const auto from = all.begin() + i * whole.c.row + col;
        std::copy(from, from + cols, expected.begin() + i * whole.c.row + col);
      }
      const auto c = PartOfProduct(serial, part, x, true, row, col, level);
      ASSERT_TRUE(SameBits(AllWide(c), expected)) << rows << "x" << cols;
    }
  }
}

// A part of the output computed alone has the bits it has in the whole, so sharded products agree
// bit by bit.
TYPED_TEST(GemmTest, PartsHaveTheBitsOfTheWhole) {
  const GemmShape whole = Dense(150, 210, 1301);
  const auto x = Draw<TypeParam>(whole, 5);
  SerialParallel serial;
  for (SimdLevel level : Levels()) {
    SCOPED_TRACE(NameOf(level));
    const std::vector<float> all = AllWide(Product(serial, whole, x, true, level));
    for (int64_t rows : {1, 7, 50}) {
      for (int64_t cols : {1, 35, 70}) ExpectPartsOf(whole, x, all, rows, cols, level);
    }
  }
}

// The same elements, wherever they lie and beside whatever they are multiplied.
TYPED_TEST(GemmTest, StridesAndBatchDoNotMatter) {
  const GemmShape dense = Dense(40, 70, 1301);
  const auto x = Draw<TypeParam>(dense, 9);
  GemmShape other = dense;  // batch 1 of 2
  other.batch = 2;
  other.a = {60000, 1, 41};
  other.b = {280000, 2, 2606};
  other.c = {3000, 1, 41};
  auto y = Draw<TypeParam>(other, 10);
  for (int64_t i = 0; i < dense.m; ++i) {
    for (int64_t k = 0; k < dense.k; ++k) {
      y.a[static_cast<size_t>(Place(other.a, 1, i, k))] =
          x.a[static_cast<size_t>(Place(dense.a, 0, i, k))];
    }
  }
  for (int64_t k = 0; k < dense.k; ++k) {
    for (int64_t j = 0; j < dense.n; ++j) {
      y.b[static_cast<size_t>(Place(other.b, 1, k, j))] =
          x.b[static_cast<size_t>(Place(dense.b, 0, k, j))];
    }
  }
  SerialParallel serial;
  for (SimdLevel level : Levels()) {
    SCOPED_TRACE(NameOf(level));
    const auto c = Product(serial, dense, x, false, level);
    const auto d = Product(serial, other, y, false, level);
    for (int64_t i = 0; i < dense.m; ++i) {
      for (int64_t j = 0; j < dense.n; ++j) {
        ASSERT_EQ(BitsOf(Wide(c[static_cast<size_t>(Place(dense.c, 0, i, j))])),
                  BitsOf(Wide(d[static_cast<size_t>(Place(other.c, 1, i, j))])))
            << i << ", " << j;
      }
    }
  }
}

}  // namespace
}  // namespace mgc::cpu
