#include "kernels/cpu/activation/activation.h"

#include "gtest/gtest.h"
#include "kernels/cpu/test_util.h"

namespace mgc::cpu {
namespace {

double GeluOf(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double GeluSlope(double x) {
  const double t = std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}
double SigmoidOf(double x) { return 1 / (1 + std::exp(-x)); }
double SiluSlope(double x) { return SigmoidOf(x) * (1 + x * (1 - SigmoidOf(x))); }

double NormalShare(double x) { return 0.5 * std::erfc(-x / std::sqrt(2)); }
double GeluErfSlope(double x) {
  return NormalShare(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
}

TEST(Activation, FunctionsOfOne) {
  CheckUnary(
      GeluErf, [](double x) { return x * NormalShare(x); }, -12, 12);
  CheckUnary([](Parallel& parallel, int64_t n, const float* x,
                float* y) { SoftCap(parallel, n, 5, x, y); },
             [](double x) { return 5 * std::tanh(x / 5); }, -40, 40);
  CheckUnary(Gelu, GeluOf, -12, 12);
  CheckUnary(
      Silu, [](double x) { return x * SigmoidOf(x); }, -30, 30);
  CheckUnary(
      Softplus, [](double x) { return std::log1p(std::exp(x)); }, -60, 60);
}

TEST(Activation, FunctionsOfTwo) {
  CheckBinary(GeluGrad, [](double dy, double x) { return dy * GeluSlope(x); });
  CheckBinary(SiluGrad, [](double dy, double x) { return dy * SiluSlope(x); });
  CheckBinary(SoftplusGrad, [](double dy, double x) { return dy * SigmoidOf(x); });
  CheckBinary(GeluErfGrad, [](double dy, double x) { return dy * GeluErfSlope(x); });
  CheckBinary([](Parallel& parallel, int64_t n, const float* dy, const float* x,
                 float* dx) { SoftCapGrad(parallel, n, 0.5f, dy, x, dx); },
              [](double dy, double x) { return dy * (1 - std::pow(std::tanh(x / 0.5), 2)); });
  CheckBinary(Geglu, [](double gate, double up) { return GeluOf(gate) * up; });
  CheckBinary(Swiglu, [](double gate, double up) { return gate * SigmoidOf(gate) * up; });
}

TEST(Activation, FarOut) {
  const std::vector<float> x = {1e30f, -1e30f, 100.0f, -100.0f, 0.0f, std::nanf("")};
  const std::vector<float> ones(x.size(), 1.0f);
  SerialParallel serial;
  for (BinaryLoop grad :
       {GeluGrad<float>, GeluErfGrad<float>, SiluGrad<float>, SoftplusGrad<float>}) {
    std::vector<float> slope(x.size());
    grad(serial, 6, ones.data(), x.data(), slope.data());
    const float expected[] = {1, 0, 1, 0, 0.5f};
    for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(slope[i], expected[i], 1e-37) << x[i];
    EXPECT_TRUE(std::isnan(slope[5]));
  }
  for (UnaryLoop function : {Gelu<float>, GeluErf<float>, Silu<float>}) {
    std::vector<float> y(x.size());
    function(serial, 6, x.data(), y.data());
    EXPECT_EQ(std::vector<float>(y.begin(), y.begin() + 5),
              (std::vector<float>{1e30f, 0, 100, 0, 0}));
    EXPECT_TRUE(std::isnan(y[5]));
  }
}

TEST(Activation, SoftplusFarOut) {
  const std::vector<float> x = {1e30f, -1e30f, 100.0f, -40.0f, std::nanf("")};
  std::vector<float> y(x.size());
  SerialParallel serial;
  Softplus(serial, 5, x.data(), y.data());
  EXPECT_EQ(y[0], 1e30f);
  EXPECT_NEAR(y[1], 0, 1e-37);
  EXPECT_EQ(y[2], 100.0f);
  EXPECT_NEAR(y[3] / std::exp(-40.0), 1, 1e-5) << "small ones are not lost beside 1";
  EXPECT_TRUE(std::isnan(y[4]));
}

TEST(Activation, BiasGelu) {
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

TEST(Activation, GegluGrad) {
  const int64_t n = 9001;
  const std::vector<float> dy = Uniform(n, 1), gate = Uniform(n, 2, -8, 8), up = Uniform(n, 3);
  const std::vector<float> both = OverWidths([&](Parallel& parallel) {
    Guarded dgate(n), dup(n);
    GegluGrad(parallel, n, dy.data(), gate.data(), up.data(), dgate.data(), dup.data());
    return Joined({dgate.Take(), dup.Take()});
  });
  for (size_t i = 0; i < gate.size(); ++i) {
    ASSERT_NEAR(both[i], dy[i] * up[i] * GeluSlope(gate[i]), 1e-6);
    ASSERT_NEAR(both[gate.size() + i], dy[i] * GeluOf(gate[i]), 2e-6);
  }
}

TEST(Activation, SwigluGrad) {
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
