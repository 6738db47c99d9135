#include "kernels/cpu/elementwise.h"

#include "gtest/gtest.h"
#include "kernels/cpu/test_util.h"

namespace mgc::cpu {
namespace {

// Around the sizes of vectors, and enough to be divided among threads.
const int64_t kSizes[] = {0, 1, 3, 15, 16, 17, 31, 100, 50000};

double GeluOf(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double GeluSlope(double x) {
  const double t = std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}
double SigmoidOf(double x) { return 1 / (1 + std::exp(-x)); }
double SiluSlope(double x) { return SigmoidOf(x) * (1 + x * (1 - SigmoidOf(x))); }

using Unary = void (*)(Parallel&, int64_t, const float*, float*);
using Binary = void (*)(Parallel&, int64_t, const float*, const float*, float*);

void CheckUnary(Unary kernel, double (*meaning)(double), float low, float high) {
  for (int64_t n : kSizes) {
    const std::vector<float> x = Uniform(n, 1, low, high);
    const std::vector<float> y = OverWidths([&](Parallel& parallel) {
      Guarded out(n);
      kernel(parallel, n, x.data(), out.data());
      return out.Take();
    });
    for (size_t i = 0; i < y.size(); ++i) {
      const double expected = meaning(x[i]);
      ASSERT_NEAR(y[i], expected, 5e-7 * std::max(1.0, std::fabs(expected))) << x[i];
    }
  }
}

void CheckBinary(Binary kernel, double (*meaning)(double, double)) {
  for (int64_t n : kSizes) {
    const std::vector<float> a = Uniform(n, 1, -6, 6), b = Uniform(n, 2, -6, 6);
    const std::vector<float> y = OverWidths([&](Parallel& parallel) {
      Guarded out(n);
      kernel(parallel, n, a.data(), b.data(), out.data());
      return out.Take();
    });
    for (size_t i = 0; i < y.size(); ++i) {
      const double expected = meaning(a[i], b[i]);
      ASSERT_NEAR(y[i], expected, 1e-6 * std::max(1.0, std::fabs(expected)));
    }
  }
}

TEST(Elementwise, FunctionsOfOne) {
  CheckUnary(Gelu, GeluOf, -12, 12);
  CheckUnary(
      Silu, [](double x) { return x * SigmoidOf(x); }, -30, 30);
  CheckUnary(
      Invert, [](double x) { return 1 / x; }, 0.25, 8);
  CheckUnary(
      SquareRoot, [](double x) { return std::sqrt(x); }, 0, 100);
}

TEST(Elementwise, FunctionsOfTwo) {
  CheckBinary(Subtract, [](double a, double b) { return a - b; });
  CheckBinary(GeluGrad, [](double dy, double x) { return dy * GeluSlope(x); });
  CheckBinary(SiluGrad, [](double dy, double x) { return dy * SiluSlope(x); });
  CheckBinary(Swiglu, [](double gate, double up) { return gate * SigmoidOf(gate) * up; });
}

TEST(Elementwise, ActivationsFarOut) {
  const std::vector<float> x = {1e30f, -1e30f, 100.0f, -100.0f, 0.0f, std::nanf("")};
  const std::vector<float> ones(x.size(), 1.0f);
  SerialParallel serial;
  for (Binary grad : {GeluGrad, SiluGrad}) {
    std::vector<float> slope(x.size());
    grad(serial, 6, ones.data(), x.data(), slope.data());
    const float expected[] = {1, 0, 1, 0, 0.5f};
    for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(slope[i], expected[i], 1e-37) << x[i];
    EXPECT_TRUE(std::isnan(slope[5]));
  }
  for (Unary function : {Gelu, Silu}) {
    std::vector<float> y(x.size());
    function(serial, 6, x.data(), y.data());
    EXPECT_EQ(std::vector<float>(y.begin(), y.begin() + 5),
              (std::vector<float>{1e30f, 0, 100, 0, 0}));
    EXPECT_TRUE(std::isnan(y[5]));
  }
}

TEST(Elementwise, AddRepeatsShorterOperands) {
  for (int64_t cols : {1, 5, 64, 1000}) {
    const int64_t rows = 37, n = rows * cols;
    const std::vector<float> a = Uniform(n, 1), b = Uniform(cols, 2), c = Uniform(n, 3);
    const std::vector<float> y = OverWidths([&](Parallel& parallel) {
      Guarded out(c);  // the last operand is also the result
      const Addend x[] = {{a.data(), n}, {b.data(), cols}, {out.data(), n}};
      Add(parallel, n, x, out.data());
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

TEST(Elementwise, BiasGelu) {
  for (int64_t cols : {1, 17, 300}) {
    const int64_t rows = 41, n = rows * cols;
    const std::vector<float> x = Uniform(n, 1, -4, 4), b = Uniform(cols, 2), dy = Uniform(n, 3);
    const std::vector<float> both = OverWidths([&](Parallel& parallel) {
      Guarded y(n), dx(n);
      BiasGelu(parallel, rows, cols, x.data(), b.data(), y.data());
      BiasGeluGrad(parallel, rows, cols, dy.data(), x.data(), b.data(), dx.data());
      return Joined({y.Take(), dx.Take()});
    });
    for (size_t i = 0; i < x.size(); ++i) {
      const double sum = double{x[i]} + b[i % static_cast<size_t>(cols)];
      ASSERT_NEAR(both[i], GeluOf(sum), 2e-6);
      ASSERT_NEAR(both[x.size() + i], dy[i] * GeluSlope(sum), 2e-6);
    }
  }
}

TEST(Elementwise, SwigluGrad) {
  const int64_t n = 9001;
  const std::vector<float> dy = Uniform(n, 1), gate = Uniform(n, 2, -8, 8), up = Uniform(n, 3);
  const std::vector<float> both = OverWidths([&](Parallel& parallel) {
    Guarded dgate(n), dup(n);
    SwigluGrad(parallel, n, dy.data(), gate.data(), up.data(), dgate.data(), dup.data());
    return Joined({dgate.Take(), dup.Take()});
  });
  for (size_t i = 0; i < gate.size(); ++i) {
    ASSERT_NEAR(both[i], dy[i] * up[i] * SiluSlope(gate[i]), 1e-6);
    ASSERT_NEAR(both[gate.size() + i], dy[i] * gate[i] * SigmoidOf(gate[i]), 2e-6);
  }
}

}  // namespace
}  // namespace mgc::cpu
