// Rotations of heads that need several launches, that are turned in part, and in vectors.
#include <cmath>

#include "gtest/gtest.h"
#include "kernels/cuda/rope/rope.h"
#include "kernels/cuda/testing/device_array.h"

namespace mgc::cuda {
namespace {

struct Case {
  int64_t heads, d, rotated;
  bool inverse, in_place;
};

template <class T>
void ExpectTurns(const Case& c, double tolerance) {
  const int64_t tokens = 14, size = tokens * c.heads * c.d, half = c.rotated / 2;
  const std::vector<T> x = Narrowed<T>(UniformFloats(size, 1));
  const std::vector<int64_t> positions = {0, 1, 5, 100, 8191, 131071, 12};
  std::vector<double> frequency;
  for (int64_t i = 0; i < half; ++i) {
    frequency.push_back(
        std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(c.rotated)));
  }
  const DeviceArray<T> in(x), apart(std::vector<T>(x.size()));
  const DeviceArray<int64_t> at(positions);
  const DeviceArray<T>& out = c.in_place ? in : apart;
  const RopeShape shape = {tokens, c.heads, c.d, c.rotated, 7, c.inverse};
  ASSERT_EQ(Rope(nullptr, shape, in.data(), at.data(), frequency.data(), out.data()), 0);
  const std::vector<float> y = Widened(out.Values()), given = Widened(x);
  for (int64_t i = 0; i < size; ++i) {
    const int64_t dim = i % c.d;
    double expected = given[static_cast<size_t>(i)];
    if (dim < c.rotated) {
      const bool is_low = dim < half;
      const double other = given[static_cast<size_t>(is_low ? i + half : i - half)];
      const double angle =
          static_cast<double>(positions[static_cast<size_t>(i / c.d / c.heads % 7)]) *
          frequency[static_cast<size_t>(dim % half)];
      const double sine = (c.inverse == is_low ? 1 : -1) * std::sin(angle);
      expected = expected * std::cos(angle) + other * sine;
    }
    ASSERT_NEAR(y[static_cast<size_t>(i)], expected, tolerance) << i;
  }
}

TEST(CudaRope, TurnsPairsOfDims) {
  for (const Case& c : {Case{3, 64, 64, false, true}, Case{2, 64, 32, true, false},
                        Case{2, 1026, 1026, false, false}, Case{3, 6, 4, true, true},
                        Case{3, 6, 2, false, false}}) {
    ExpectTurns<float>(c, 3e-7);
    ExpectTurns<Bfloat16>(c, 0x1p-8);
  }
}

}  // namespace
}  // namespace mgc::cuda
