// Dropout and casts where vectors are used: the ops' cases are too small for them.
#include <string>

#include "graph/base/random.h"
#include "gtest/gtest.h"
#include "kernels/cuda/identity/identity.h"
#include "kernels/cuda/testing/device_array.h"

namespace mgc::cuda {
namespace {

constexpr RandomStream kStream = {0x0123456789abcdef, 0xfedcba9876543210};

// A tile [2, 3, 48] of a tensor [4, 7, 90] that begins at index `base`.
IndexGrid Tile(uint64_t base) {
  IndexGrid grid;
  grid.base = base;
  grid.rank = 3;
  const int64_t size[] = {2, 3, 48}, stride[] = {int64_t{7} * 90, 90, 1};
  for (int d = 0; d < 3; ++d) {
    grid.size[d] = size[d];
    grid.stride[d] = stride[d];
  }
  return grid.Merged();
}

template <class T>
void ExpectDropsAsTheReference(const IndexGrid& grid, size_t shift) {
  constexpr double kP = 0.3;
  constexpr uint64_t kSampleStride = 77;
  const int64_t n = grid.elements();
  const std::vector<T> x = Narrowed<T>(UniformFloats(n, 1));
  const DeviceArray<T> in(x, shift), out(std::vector<T>(x.size()), shift);
  const DeviceArray<int64_t> step({40});
  const DropoutRule rule = MakeDropoutRule(kP, kStream);
  ASSERT_EQ(Dropout(nullptr, rule, grid, kSampleStride, {step.data(), 2}, in.data(), out.data()),
            0);
  const std::vector<T> y = out.Values();
  for (size_t i = 0; i < y.size(); ++i) {
    const uint64_t index = IndexOf(grid, static_cast<int64_t>(i)) + 42 * kSampleStride;
    const bool keep = KeepBit(kStream.seed, kStream.stream, index, kP);
    T expected;
    Rounded(keep ? AsFloat(x[i]) * rule.scale : 0.0f, &expected);
    ASSERT_EQ(AsFloat(y[i]), AsFloat(expected)) << i << " of base " << grid.base;
  }
}

TEST(CudaDropout, KeepsTheReferencesElements) {
  for (const uint64_t base : {uint64_t{0}, uint64_t{1}, uint64_t{1543}, (uint64_t{1} << 34) - 6}) {
    for (const size_t shift : {0, 1}) {
      ExpectDropsAsTheReference<float>(Tile(base), shift);
      ExpectDropsAsTheReference<Bfloat16>(Tile(base), shift);
      ExpectDropsAsTheReference<Float16>(IndexGrid::Run(base, 1001), shift);
      ExpectDropsAsTheReference<Bfloat16>(IndexGrid::Run(base, 1600), shift);
    }
  }
}

template <class From, class To>
void ExpectCasts(int64_t n, size_t shift) {
  const std::vector<From> x = Narrowed<From>(UniformFloats(n, 2, -70000, 70000));
  const DeviceArray<From> in(x, shift);
  const DeviceArray<To> out(std::vector<To>(x.size()), shift);
  ASSERT_EQ(Cast(nullptr, n, in.data(), out.data()), 0);
  EXPECT_EQ(Widened(out.Values()), Widened(Narrowed<To>(Widened(x))));
}

TEST(CudaCast, AnySizeAndPlace) {
  for (const int64_t n : {0, 5, 4096}) {
    for (const size_t shift : {0, 1}) {
      ExpectCasts<float, Bfloat16>(n, shift);
      ExpectCasts<float, Float16>(n, shift);
      ExpectCasts<Bfloat16, float>(n, shift);
      ExpectCasts<Float16, float>(n, shift);
    }
  }
}

}  // namespace
}  // namespace mgc::cuda
