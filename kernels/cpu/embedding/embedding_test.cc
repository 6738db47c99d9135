#include "kernels/cpu/embedding/embedding.h"

#include "gtest/gtest.h"
#include "kernels/cpu/test_util.h"

namespace mgc::cpu {
namespace {

// Ids repeat, lie outside the shard and in its padding.
const std::vector<int64_t> kIds = {100, 103, 99, 100, 106, 105, 0, 100, 107, 1000, 103};
constexpr int64_t kN = 11;

TEST(Embedding, LookupGivesZerosForOtherRanksIds) {
  for (int64_t cols : {1, 5, 300}) {
    const TableShape shape = {8, cols, 6, 100};
    const std::vector<float> table = Uniform(8 * cols, 1);
    const std::vector<float> y = OverWidths([&](Parallel& parallel) {
      Guarded out(kN * cols);
      Lookup(parallel, shape, table.data(), kN, kIds.data(), out.data());
      return out.Take();
    });
    for (size_t i = 0; i < y.size(); ++i) {
      const size_t width = static_cast<size_t>(cols);
      const int64_t row = kIds[i / width] - 100;
      const bool here = row >= 0 && row < 6;
      ASSERT_EQ(y[i], here ? table[static_cast<size_t>(row) * width + i % width] : 0.0f);
    }
  }
}

TEST(Embedding, GradientAddsInTokenOrder) {
  for (int64_t cols : {1, 5, 700}) {
    const TableShape shape = {8, cols, 6, 100};
    const std::vector<float> dy = Uniform(kN * cols, 2), old = Uniform(8 * cols, 3);
    for (bool accumulate : {false, true}) {
      std::vector<float> expected = accumulate ? old : std::vector<float>(old.size(), 0.0f);
      for (size_t i = 0; i < dy.size(); ++i) {
        const size_t width = static_cast<size_t>(cols);
        const int64_t row = kIds[i / width] - 100;
        if (row >= 0 && row < 6) expected[static_cast<size_t>(row) * width + i % width] += dy[i];
      }
      const std::vector<float> actual = OverWidths([&](Parallel& parallel) {
        Guarded out(old);
        LookupGrad(parallel, shape, kN, kIds.data(), dy.data(), accumulate, out.data());
        return out.Take();
      });
      EXPECT_TRUE(SameBits(actual, expected));
    }
  }
}

}  // namespace
}  // namespace mgc::cpu
