#include "kernels/cpu/rope/rope.h"

#include "gtest/gtest.h"
#include "kernels/cpu/test_util.h"

namespace mgc::cpu {
namespace {

TEST(Rope, RotatesPairsOfDims) {
  for (int64_t d : {2, 6, 64, 130, 1026}) {
    const int64_t tokens = 14, heads = 3, size = d * heads * tokens;
    const std::vector<float> x = Uniform(size, 1);
    std::vector<int64_t> positions = {0, 1, 5, 100, 8191, 131071, 12};
    std::vector<double> frequency(static_cast<size_t>(d / 2));
    for (size_t i = 0; i < frequency.size(); ++i) {
      frequency[i] = std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(d));
    }
    for (bool inverse : {false, true}) {
      const std::vector<float> y = OverWidths([&](Parallel& parallel) {
        Guarded out(x);  // in place
        Rope(parallel, tokens, heads, d, d, out.data(), positions.data(), 7, frequency.data(),
             inverse, out.data());
        return out.Take();
      });
      std::vector<double> expected(x.size());
      for (int64_t i = 0; i < size; ++i) {
        const int64_t pair = i % d % (d / 2), low = i / d * d + pair, high = low + d / 2;
        const double sign = inverse ? -1 : 1;
        const double position =
            static_cast<double>(positions[static_cast<size_t>(i / d / heads % 7)]);
        const double angle =
            position * std::pow(10000.0, -2.0 * static_cast<double>(pair) / static_cast<double>(d));
        const double c = std::cos(angle), s = sign * std::sin(angle);
        const double a = x[static_cast<size_t>(low)], b = x[static_cast<size_t>(high)];
        expected[static_cast<size_t>(i)] = i == low ? a * c - b * s : b * c + a * s;
      }
      ExpectClose(y, expected, 2e-7);
    }
  }
}

TEST(Rope, LeavesTheRestOfAHead) {
  const int64_t tokens = 5, heads = 3, d = 10, rotated = 6;
  const std::vector<float> x = Uniform(tokens * heads * d, 1);
  const std::vector<int64_t> positions = {0, 3, 1, 9, 4};
  const std::vector<double> frequency = {1, 0.3, 0.01};
  std::vector<float> part;  // what turns, by itself
  for (size_t i = 0; i < x.size(); ++i) {
    if (static_cast<int64_t>(i) % d < rotated) part.push_back(x[i]);
  }
  SerialParallel serial;
  Rope(serial, tokens, heads, rotated, rotated, part.data(), positions.data(), tokens,
       frequency.data(), false, part.data());
  for (bool in_place : {false, true}) {
    Guarded out(x);
    const std::vector<float>& from = x;
    Rope(serial, tokens, heads, d, rotated, in_place ? out.data() : from.data(), positions.data(),
         tokens, frequency.data(), false, out.data());
    const std::vector<float> y = out.Take();
    size_t turned = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const bool turns = static_cast<int64_t>(i) % d < rotated;
      EXPECT_EQ(y[i], turns ? part[turned++] : x[i]) << i;
    }
  }
}

}  // namespace
}  // namespace mgc::cpu
