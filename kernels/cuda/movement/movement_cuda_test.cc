// Transposes and block copies of sizes that reach every way of moving.
#include <algorithm>
#include <numeric>

#include "gtest/gtest.h"
#include "kernels/cuda/movement/movement.h"
#include "kernels/cuda/testing/device_array.h"

namespace mgc::cuda {
namespace {

template <class U>
std::vector<U> Numbered(int64_t n) {
  std::vector<U> x(static_cast<size_t>(n));
  std::iota(x.begin(), x.end(), U{1});
  return x;
}

template <class U>
void ExpectTransposes(const TransposedDims& p, size_t shift) {
  int64_t n = 1;
  for (int d = 0; d < p.rank; ++d) n *= p.extent[d];
  const std::vector<U> x = Numbered<U>(n);
  const DeviceArray<U> from(x, shift), to(std::vector<U>(x.size()), shift);
  ASSERT_EQ(Transpose(nullptr, p, sizeof(U), from.data(), to.data()), 0);
  const std::vector<U> y = to.Values();
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i, at = 0;
    for (int d = p.rank - 1; d >= 0; --d) {
      at += rest % p.extent[d] * p.stride[d];
      rest /= p.extent[d];
    }
    ASSERT_EQ(y[static_cast<size_t>(i)], x[static_cast<size_t>(at)]) << i;
  }
}

// Of a dense operand of these sizes, dim perm[d] of which is the result's dim d.
TransposedDims DimsOf(const std::vector<int64_t>& sizes, const std::vector<int>& perm) {
  TransposedDims p;
  p.rank = static_cast<int>(perm.size());
  for (int d = 0; d < p.rank; ++d) {
    const auto dim = static_cast<size_t>(perm[static_cast<size_t>(d)]);
    p.extent[d] = sizes[dim];
    p.stride[d] = 1;
    for (size_t after = dim + 1; after < sizes.size(); ++after) p.stride[d] *= sizes[after];
  }
  return p;
}

TEST(CudaTranspose, AnyOrderOfDims) {
  const TransposedDims cases[] = {
      TransposedDims(),
      DimsOf({40, 70}, {1, 0}),
      DimsOf({3, 33, 65}, {0, 2, 1}),
      DimsOf({5, 3, 31, 2}, {3, 1, 2, 0}),
      DimsOf({2, 5, 3, 16}, {0, 2, 1, 3}),  // rows of whole vectors
      DimsOf({4, 3, 6}, {1, 0, 2}),         // rows of other sizes
      DimsOf({0, 3}, {1, 0}),
  };
  for (const TransposedDims& p : cases) {
    for (const size_t shift : {0, 1}) {
      ExpectTransposes<uint16_t>(p, shift);
      ExpectTransposes<uint32_t>(p, shift);
      ExpectTransposes<uint64_t>(p, shift);
    }
  }
}

TEST(CudaCopyBlocks, AnyWidth) {
  for (const int64_t width : {0, 1, 3, 8, 100}) {
    for (const int64_t gap : {0, 1, 8}) {
      const int64_t outer = 7, step = width + gap;
      const std::vector<uint16_t> x = Numbered<uint16_t>(outer * width);
      std::vector<uint16_t> expected(static_cast<size_t>(outer * step));
      const DeviceArray<uint16_t> from(x), to(expected);
      ASSERT_EQ(CopyBlocks(nullptr, outer, 2 * width, reinterpret_cast<const char*>(from.data()),
                           2 * width, reinterpret_cast<char*>(to.data()), 2 * step),
                0);
      for (int64_t o = 0; o < outer; ++o) {
        std::copy_n(x.begin() + o * width, width, expected.begin() + o * step);
      }
      EXPECT_EQ(to.Values(), expected) << width << " of " << step;
    }
  }
}

}  // namespace
}  // namespace mgc::cuda
