// Softmax over rows of one warp and of a block, whole vectors or not.
#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "kernels/cuda/softmax/softmax.h"
#include "kernels/cuda/testing/device_array.h"

namespace mgc::cuda {
namespace {

template <class T>
void ExpectSoftmax(int64_t rows, int64_t cols, double tolerance) {
  const int64_t n = rows * cols;
  const std::vector<T> x = Narrowed<T>(UniformFloats(n, 1, -9, 9));
  const std::vector<T> g = Narrowed<T>(UniformFloats(n, 2));
  const DeviceArray<T> value(x), grad(g), shifted(x, 1);
  ASSERT_EQ(Softmax(nullptr, rows, cols, value.data(), value.data()), 0);
  ASSERT_EQ(Softmax(nullptr, rows, cols, shifted.data(), shifted.data()), 0);
  const std::vector<float> y = Widened(value.Values());
  EXPECT_EQ(y, Widened(shifted.Values())) << "bits depend on the place";
  ASSERT_EQ(SoftmaxGrad(nullptr, rows, cols, grad.data(), value.data(), grad.data()), 0);
  const std::vector<float> dx = Widened(grad.Values()), in = Widened(x), dy = Widened(g);
  for (int64_t begin = 0; begin < n; begin += cols) {
    const auto first = static_cast<size_t>(begin), end = static_cast<size_t>(begin + cols);
    const double most = *std::max_element(in.begin() + begin, in.begin() + begin + cols);
    double sum = 0, dot = 0;
    for (size_t i = first; i < end; ++i) sum += std::exp(in[i] - most);
    for (size_t i = first; i < end; ++i) dot += double{dy[i]} * y[i];
    for (size_t i = first; i < end; ++i) {
      ASSERT_NEAR(y[i], std::exp(in[i] - most) / sum, tolerance) << i;
      ASSERT_NEAR(dx[i], y[i] * (dy[i] - dot), tolerance) << i;
    }
  }
}

TEST(CudaSoftmax, RowsOfAnySize) {
  for (const int64_t cols : {1, 5, 64, 1000, 1001, 1100, 3001}) {
    ExpectSoftmax<float>(cols < 100 ? 11 : 2, cols, 5e-7);
    ExpectSoftmax<Bfloat16>(cols < 100 ? 11 : 2, cols, 0x1p-9);
  }
  ExpectSoftmax<float>(0, 5, 0);
}

}  // namespace
}  // namespace mgc::cuda
