// Activations far out, where a formula may overflow, and over vectors and tails.
#include <cmath>

#include "gtest/gtest.h"
#include "kernels/cuda/activation/activation.h"
#include "kernels/cuda/testing/device_array.h"

namespace mgc::cuda {
namespace {

using UnaryLaunch = int (*)(Stream, int64_t, const float*, float*);
using BinaryLaunch = int (*)(Stream, int64_t, const float*, const float*, float*);

std::vector<float> Of(UnaryLaunch launch, const std::vector<float>& x) {
  const DeviceArray<float> in(x), out(x);
  EXPECT_EQ(launch(nullptr, static_cast<int64_t>(x.size()), in.data(), out.data()), 0);
  return out.Values();
}

std::vector<float> SlopeOf(BinaryLaunch launch, const std::vector<float>& x) {
  const DeviceArray<float> ones(std::vector<float>(x.size(), 1.0f)), in(x), out(x);
  EXPECT_EQ(launch(nullptr, static_cast<int64_t>(x.size()), ones.data(), in.data(), out.data()), 0);
  return out.Values();
}

TEST(CudaActivation, FarOut) {
  const std::vector<float> x = {1e30f, -1e30f, 100.0f, -100.0f, 0.0f, std::nanf("")};
  for (BinaryLaunch grad :
       {GeluGrad<float>, GeluErfGrad<float>, SiluGrad<float>, SoftplusGrad<float>}) {
    const std::vector<float> slope = SlopeOf(grad, x);
    const float expected[] = {1, 0, 1, 0, 0.5f};
    for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(slope[i], expected[i], 1e-37) << x[i];
    EXPECT_TRUE(std::isnan(slope[5]));
  }
  for (UnaryLaunch function : {Gelu<float>, GeluErf<float>, Silu<float>}) {
    const std::vector<float> y = Of(function, x);
    EXPECT_EQ(std::vector<float>(y.begin(), y.begin() + 5),
              (std::vector<float>{1e30f, 0, 100, 0, 0}));
    EXPECT_TRUE(std::isnan(y[5]));
  }
}

TEST(CudaActivation, SoftplusFarOut) {
  const std::vector<float> y = Of(Softplus<float>, {1e30f, -1e30f, 100.0f, -40.0f, std::nanf("")});
  EXPECT_EQ(y[0], 1e30f);
  EXPECT_NEAR(y[1], 0, 1e-37);
  EXPECT_EQ(y[2], 100.0f);
  EXPECT_NEAR(y[3] / std::exp(-40.0), 1, 1e-5) << "small ones are not lost beside 1";
  EXPECT_TRUE(std::isnan(y[4]));
}

double GeluMeaning(double x) {
  return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

TEST(CudaActivation, BiasGeluIsGeluOfTheStoredSum) {
  for (const int64_t cols : {7, 64}) {
    const int64_t n = 41 * cols;
    const std::vector<Bfloat16> x = Narrowed<Bfloat16>(UniformFloats(n, 1, -4, 4));
    const std::vector<Bfloat16> b = Narrowed<Bfloat16>(UniformFloats(cols, 2));
    const DeviceArray<Bfloat16> in(x), bias(b), out(x);
    ASSERT_EQ(BiasGelu(nullptr, n, cols, in.data(), bias.data(), out.data()), 0);
    const std::vector<float> y = Widened(out.Values());
    for (size_t i = 0; i < x.size(); ++i) {
      const float sum = ToFloat(ToBfloat16(ToFloat(x[i]) + ToFloat(b[i % b.size()])));
      const double expected = GeluMeaning(sum);
      ASSERT_NEAR(y[i], expected, 0x1p-8 * std::fabs(expected) + 1e-6) << sum;
    }
  }
}

TEST(CudaActivation, GateGradientsInTheirOperandsPlaces) {
  for (const int64_t n : {5, 1003}) {
    const std::vector<float> dy = UniformFloats(n, 1), gate = UniformFloats(n, 2, -8, 8),
                             up = UniformFloats(n, 3);
    const DeviceArray<float> a(dy), b(gate), c(up);
    ASSERT_EQ(SwigluGrad(nullptr, n, a.data(), b.data(), c.data(), c.data(), a.data()), 0);
    const std::vector<float> dgate = c.Values(), dup = a.Values();
    for (size_t i = 0; i < gate.size(); ++i) {
      const double share = 1 / (1 + std::exp(-double{gate[i]}));
      ASSERT_NEAR(dgate[i], dy[i] * up[i] * share * (1 + gate[i] * (1 - share)), 1e-6);
      ASSERT_NEAR(dup[i], dy[i] * gate[i] * share, 2e-6);
    }
  }
}

}  // namespace
}  // namespace mgc::cuda
