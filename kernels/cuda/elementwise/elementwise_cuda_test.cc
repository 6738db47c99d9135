// Sums and products where vectors, tails and repeating operands meet.
#include <memory>

#include "gtest/gtest.h"
#include "kernels/cuda/elementwise/elementwise.h"
#include "kernels/cuda/testing/device_array.h"

namespace mgc::cuda {
namespace {

template <class T>
T RoundedTo(float x) {
  T rounded;
  Rounded(x, &rounded);
  return rounded;
}

// y = x0 + x1 + ..., operand k with sizes[k] elements, the result in the place of the last operand
// that has all of them.
template <class T>
void ExpectAdds(const std::vector<int64_t>& sizes, size_t shift) {
  const int64_t n = sizes[0];
  std::vector<std::vector<T>> x;
  std::vector<std::unique_ptr<DeviceArray<T>>> arrays;
  std::vector<const T*> operands;
  size_t result = 0;
  for (size_t k = 0; k < sizes.size(); ++k) {
    x.push_back(Narrowed<T>(UniformFloats(sizes[k], static_cast<uint32_t>(k + 1))));
    arrays.push_back(std::make_unique<DeviceArray<T>>(x[k], shift));
    operands.push_back(arrays[k]->data());
    if (sizes[k] == n) result = k;
  }
  ASSERT_EQ(Add(nullptr, n, static_cast<int>(sizes.size()), operands.data(), sizes.data(),
                arrays[result]->data()),
            0);
  const std::vector<T> y = arrays[result]->Values();
  for (size_t i = 0; i < y.size(); ++i) {
    float sum = AsFloat(x[0][i]);
    for (size_t k = 1; k < x.size(); ++k) sum += AsFloat(x[k][i % x[k].size()]);
    ASSERT_EQ(AsFloat(y[i]), AsFloat(RoundedTo<T>(sum))) << i;
  }
}

TEST(CudaElementwise, AddRepeatsShorterOperands) {
  for (const size_t shift : {0, 1}) {
    for (const int64_t cols : {1, 5, 64}) {
      const int64_t n = 37 * cols;
      ExpectAdds<float>({n, cols}, shift);
      ExpectAdds<Bfloat16>({n, cols, n}, shift);
      ExpectAdds<Float16>({n, n, cols, n, 1, n}, shift);
    }
    ExpectAdds<Bfloat16>({70}, shift);
    ExpectAdds<Bfloat16>({0, 0}, shift);
  }
}

template <class T>
void ExpectMultiplies(int64_t n, int64_t period, size_t shift) {
  const std::vector<T> a = Narrowed<T>(UniformFloats(n, 1));
  const std::vector<T> b = Narrowed<T>(UniformFloats(period, 2));
  const DeviceArray<T> y(a, shift), factors(b, shift);
  ASSERT_EQ(Multiply(nullptr, n, y.data(), period, factors.data(), y.data()), 0);
  const std::vector<T> products = y.Values();
  for (size_t i = 0; i < a.size(); ++i) {
    const T expected = RoundedTo<T>(AsFloat(a[i]) * AsFloat(b[i % b.size()]));
    ASSERT_EQ(AsFloat(products[i]), AsFloat(expected)) << i;
  }
}

TEST(CudaElementwise, MultiplyRepeatsTheSecond) {
  for (const size_t shift : {0, 1}) {
    for (const int64_t period : {1, 3, 40, 1200}) {
      ExpectMultiplies<float>(1200, period, shift);
      ExpectMultiplies<Bfloat16>(1200, period, shift);
    }
  }
}

TEST(CudaElementwise, ScalesByNumbersOfHostAndDevice) {
  const std::vector<Bfloat16> x = Narrowed<Bfloat16>(UniformFloats(1003, 1));
  const DeviceArray<Bfloat16> in(x), out(x), twice(x);
  const DeviceArray<double> factor({0.3});
  ASSERT_EQ(Scale(nullptr, 1003, 0.3, in.data(), out.data()), 0);
  ASSERT_EQ(ScaleBy(nullptr, 1003, factor.data(), in.data(), twice.data()), 0);
  const std::vector<float> y = Widened(out.Values());
  EXPECT_EQ(y, Widened(twice.Values()));
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(y[i], AsFloat(RoundedTo<Bfloat16>(0.3f * AsFloat(x[i]))));
  }
}

}  // namespace
}  // namespace mgc::cuda
