#include "kernels/cpu/elementwise/elementwise.h"

#include "gtest/gtest.h"
#include "kernels/cpu/test_util.h"

namespace mgc::cpu {
namespace {

TEST(Elementwise, FunctionsOfOne) {
  CheckUnary(
      Invert, [](double x) { return 1 / x; }, 0.25, 8);
  CheckUnary(
      SquareRoot, [](double x) { return std::sqrt(x); }, 0, 100);
}

TEST(Elementwise, FunctionsOfTwo) {
  CheckBinary(Subtract, [](double a, double b) { return a - b; });
}

TEST(Elementwise, AddRepeatsShorterOperands) {
  for (int64_t cols : {1, 5, 64, 1000}) {
    const int64_t rows = 37, n = rows * cols;
    const std::vector<float> a = Uniform(n, 1), b = Uniform(cols, 2), c = Uniform(n, 3);
    const std::vector<float> y = OverWidths([&](Parallel& parallel) {
      Guarded out(c);  // the last operand is also the result
      const Addend<float> x[] = {{a.data(), n}, {b.data(), cols}, {out.data(), n}};
      Add<float>(parallel, n, x, out.data());
      return out.Take();
    });
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(y[i], (a[i] + b[i % static_cast<size_t>(cols)]) + c[i]);
    }
  }
}

TEST(Elementwise, AddOfOneIsACopy) {
  const std::vector<float> a = Uniform(70, 1);
  SerialParallel serial;
  Guarded out(70);
  Add(serial, 70, {{a.data(), 70}}, out.data());
  EXPECT_TRUE(SameBits(out.Take(), a));
}

TEST(Elementwise, MultiplyAndScale) {
  const int64_t n = 30000;
  const std::vector<float> a = Uniform(n, 1);
  for (int64_t size : {1, 3, 150, 30000}) {
    const std::vector<float> b = Uniform(size, 2);
    const std::vector<float> y = OverWidths([&](Parallel& parallel) {
      Guarded out(n);
      Multiply(parallel, n, a.data(), size, b.data(), out.data());
      return out.Take();
    });
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(y[i], a[i] * b[i % static_cast<size_t>(size)]);
    }
  }
  SerialParallel serial;
  Guarded scaled(n);
  Scale(serial, n, 0.3f, a.data(), scaled.data());
  const std::vector<float> s = scaled.Take();
  for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(s[i], 0.3f * a[i]);
}

}  // namespace
}  // namespace mgc::cpu
