#include "kernels/cpu/random/random.h"

#include "graph/base/random.h"
#include "gtest/gtest.h"
#include "kernels/cpu/test_util.h"

namespace mgc::cpu {
namespace {

constexpr RandomStream kStream = {0x0123456789abcdef, 0xfedcba9876543210};

uint32_t Reference(uint64_t index) { return RandomBits(kStream.seed, kStream.stream, index); }

TEST(Random, RunsStartAnywhere) {
  // Starts in every lane, and before the low word of the block number overflows.
  const std::vector<float> ones(200, 1.0f);
  SerialParallel serial;
  for (uint64_t index :
       {uint64_t{0}, uint64_t{1}, uint64_t{6}, uint64_t{63}, (uint64_t{1} << 34) - 37}) {
    for (int64_t n : {0, 1, 3, 4, 63, 64, 65, 200}) {
      for (double p : {0.125, 0.5, 0.8}) {
        Guarded out(n);
        Dropout(serial, MakeDropoutRule(p, kStream), IndexGrid::Run(index, n), ones.data(),
                out.data());
        const std::vector<float> y = out.Take();
        for (size_t i = 0; i < y.size(); ++i) {
          ASSERT_EQ(y[i] != 0, Reference(index + i) >= DropThreshold(p)) << index << " + " << i;
        }
      }
    }
  }
}

// A tile [2, 3, 50] of a tensor [4, 7, 90]: rows 2.., 3.., columns 20...
IndexGrid Tile() {
  IndexGrid grid;
  grid.base = (2 * 7 + 3) * 90 + 20;
  grid.rank = 3;
  const int64_t size[] = {2, 3, 50}, stride[] = {int64_t{7} * 90, 90, 1};
  for (int d = 0; d < 3; ++d) {
    grid.size[d] = size[d];
    grid.stride[d] = stride[d];
  }
  return grid;
}

uint64_t TileIndex(size_t i) {
  return (2 * 7 + 3) * 90 + 20 + i / 150 * 7 * 90 + i / 50 % 3 * 90 + i % 50;
}

TEST(Random, NormalsAreTheReference) {
  const std::vector<float> y = OverWidths([&](Parallel& parallel) {
    Guarded out(300);
    FillNormal(parallel, kStream, Tile(), 0.02, out.data());
    return out.Take();
  });
  for (size_t i = 0; i < y.size(); ++i) {
    const double normal = 0.02 * RandomNormal(kStream.seed, kStream.stream, TileIndex(i));
    ASSERT_NEAR(y[i], normal, 6e-8 * std::fabs(normal) + 2e-11);
  }
}

TEST(Random, DropoutKeepsTheReferencesElements) {
  for (double p : {0.0, 0.1, 0.5, 1.0}) {
    const std::vector<float> x = Uniform(300, 1);
    const std::vector<float> y = OverWidths([&](Parallel& parallel) {
      Guarded out(x);  // in place
      Dropout(parallel, MakeDropoutRule(p, kStream), Tile(), out.data(), out.data());
      return out.Take();
    });
    for (size_t i = 0; i < y.size(); ++i) {
      const bool keep = KeepBit(kStream.seed, kStream.stream, TileIndex(i), p);
      ASSERT_EQ(y[i], keep ? x[i] * static_cast<float>(1 / (1 - p)) : 0.0f) << p;
    }
  }
}

TEST(Random, AnyGridAndAnyDivision) {
  IndexGrid grid;  // strides that do not merge, an inner dim of 1
  grid.base = 3;
  grid.rank = 4;
  const int64_t size[] = {3, 1, 40, 1}, stride[] = {1000, 5, 10, 7};
  for (int d = 0; d < 4; ++d) {
    grid.size[d] = size[d];
    grid.stride[d] = stride[d];
  }
  const std::vector<float> ones(120, 1.0f);
  SerialParallel serial;
  Guarded y(120);
  Dropout(serial, MakeDropoutRule(0.5, kStream), grid, ones.data(), y.data());
  const std::vector<float> actual = y.Take();
  for (size_t i = 0; i < actual.size(); ++i) {
    const uint64_t index = 3 + i / 40 * 1000 + i % 40 * 10;
    ASSERT_EQ(actual[i], Reference(index) >= uint32_t{1} << 31 ? 2.0f : 0.0f);
  }
}

}  // namespace
}  // namespace mgc::cpu
