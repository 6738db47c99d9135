#include "kernels/cpu/reduce/reduce.h"

#include <limits>

#include "gtest/gtest.h"
#include "kernels/cpu/test_util.h"

namespace mgc::cpu {
namespace {

TEST(Reduce, SumsOfEverything) {
  for (int64_t n : {0, 1, 15, 100, 8192, 8193, 100003}) {
    const std::vector<float> x = Uniform(n, 1, -1, 3), y = Uniform(n, 2);
    std::vector<double> workspace(static_cast<size_t>(SumWorkspaceDoubles(n)));
    double sum = 0, squares = 0, products = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      sum += x[i];
      squares += double{x[i]} * x[i];
      products += double{x[i]} * y[i];
    }
    std::vector<std::vector<double>> results;
    for (int width : {1, 2, 3}) {
      CallThreads parallel(width);
      results.push_back({Sum(parallel, n, x.data(), workspace.data()),
                         SumOfSquares(parallel, n, x.data(), workspace.data()),
                         SumOfProducts(parallel, n, x.data(), y.data(), workspace.data())});
    }
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
    EXPECT_NEAR(results[0][0], sum, 1e-6 * (1 + std::fabs(sum)));
    // In double throughout.
    EXPECT_NEAR(results[0][1], squares, 1e-12 * (1 + squares));
    EXPECT_NEAR(results[0][2], products, 1e-12 * (1 + squares));
  }
}

TEST(Reduce, SumMiddle) {
  for (int64_t outer : {1, 4}) {
    for (int64_t reduced : {1, 65, 1000}) {
      for (int64_t inner : {1, 7, 64, 150}) {
        const std::vector<float> x = Uniform(outer * reduced * inner, 3);
        const std::vector<float> old = Uniform(outer * inner, 4);
        std::vector<double> expected(old.size()), added(old.begin(), old.end());
        for (size_t i = 0; i < x.size(); ++i) {
          const size_t group = static_cast<size_t>(reduced * inner),
                       in = static_cast<size_t>(inner);
          expected[i / group * in + i % in] += x[i];
          added[i / group * in + i % in] += x[i];
        }
        for (bool accumulate : {false, true}) {
          const std::vector<float> y = OverWidths([&](Parallel& parallel) {
            Guarded out(old);
            SumMiddle(parallel, outer, reduced, inner, x.data(), accumulate, out.data());
            return out.Take();
          });
          ExpectClose(y, accumulate ? added : expected, 1e-5);
        }
      }
    }
  }
}

TEST(Reduce, RowMaxIgnoresPadding) {
  const int64_t rows = 50, cols = 131;
  const std::vector<float> x = Uniform(rows * cols, 5, -9, -1);
  for (int64_t valid : {0, 1, 15, 64, 100, 131}) {
    const std::vector<float> y = OverWidths([&](Parallel& parallel) {
      Guarded out(rows);
      RowMax(parallel, rows, cols, valid, x.data(), out.data());
      return out.Take();
    });
    for (int64_t r = 0; r < rows; ++r) {
      float expected = -std::numeric_limits<float>::infinity();
      for (int64_t c = 0; c < valid; ++c) {
        expected = std::max(expected, x[static_cast<size_t>(r * cols + c)]);
      }
      ASSERT_EQ(y[static_cast<size_t>(r)], expected) << valid;
    }
  }
}

}  // namespace
}  // namespace mgc::cpu
