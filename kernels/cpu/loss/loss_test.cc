#include "kernels/cpu/loss/loss.h"

#include <limits>

#include "gtest/gtest.h"
#include "kernels/cpu/test_util.h"

namespace mgc::cpu {
namespace {

struct Case {
  LogitsShape shape;
  std::vector<float> logits, m, dz, dp;
  std::vector<int64_t> ids;  // some lie outside, also in the padding
};

Case Make(int64_t rows, int64_t cols, int64_t valid, int64_t offset) {
  Case c = {{rows, cols, valid, offset},
            Uniform(rows * cols, 1, -9, 2),
            Uniform(rows, 2, 1, 2),
            Uniform(rows, 3),
            Uniform(rows, 4),
            {}};
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t col = valid; col < cols; ++col) {  // padding must not be looked at
      c.logits[static_cast<size_t>(r * cols + col)] = std::numeric_limits<float>::infinity();
    }
    c.ids.push_back(offset - 2 + r * 7 % (cols + 4));
  }
  return c;
}

bool Here(const Case& c, size_t r, int64_t col) {
  return c.ids[r] - c.shape.offset == col && col < c.shape.valid;
}

void Check(const Case& c) {
  const LogitsShape& s = c.shape;
  const int64_t n = s.rows * s.cols;
  std::vector<double> z, picked, exp_grad, pick_grad, both_grad;
  for (size_t r = 0; r < static_cast<size_t>(s.rows); ++r) {
    z.push_back(0);
    picked.push_back(0);
    for (int64_t col = 0; col < s.cols; ++col) {
      const float logit = c.logits[r * static_cast<size_t>(s.cols) + static_cast<size_t>(col)];
      const double e = col < s.valid ? std::exp(double{logit} - c.m[r]) : 0;
      z.back() += e;
      if (Here(c, r, col)) picked.back() = logit;
      exp_grad.push_back(e * c.dz[r]);
      pick_grad.push_back(Here(c, r, col) ? c.dp[r] : 0);
      both_grad.push_back(exp_grad.back() + pick_grad.back());
    }
  }
  const float* m = c.m.data();
  const auto over = [&](int64_t size, auto kernel) {
    return OverWidths([&](Parallel& parallel) {
      Guarded out(size);
      kernel(parallel, out.data());
      return out.Take();
    });
  };
  ExpectClose(over(s.rows, [&](Parallel& p, float* y) { ExpSum(p, s, c.logits.data(), m, y); }), z,
              1e-6);
  ExpectClose(
      over(s.rows, [&](Parallel& p, float* y) { Pick(p, s, c.logits.data(), c.ids.data(), y); }),
      picked, 0);
  ExpectClose(
      over(n, [&](Parallel& p, float* y) { ExpSumGrad(p, s, c.logits.data(), m, c.dz.data(), y); }),
      exp_grad, 1e-6);
  ExpectClose(over(n, [&](Parallel& p, float* y) { PickGrad(p, s, c.ids.data(), c.dp.data(), y); }),
              pick_grad, 0);
  ExpectClose(over(n,
                   [&](Parallel& p, float* y) {
                     std::copy(c.logits.begin(), c.logits.end(), y);  // in place
                     CrossEntropyGrad(p, s, y, m, c.dz.data(), c.ids.data(), c.dp.data(), y);
                   }),
              both_grad, 1e-6);
}

TEST(Loss, WholeVocabulary) {
  Check(Make(1, 1, 1, 0));
  Check(Make(40, 257, 257, 0));
  Check(Make(3, 30000, 30000, 0));
}

TEST(Loss, ShardWithPadding) {
  Check(Make(33, 40, 33, 120));
  Check(Make(33, 40, 1, 120));
  Check(Make(5, 16, 0, 64));
}

TEST(Loss, LogShift) {
  const std::vector<float> z = Uniform(3000, 1, 1e-3f, 50), m = Uniform(3000, 2, -30, 30);
  std::vector<double> expected;
  for (size_t i = 0; i < z.size(); ++i) expected.push_back(m[i] + std::log(double{z[i]}));
  const std::vector<float> y = OverWidths([&](Parallel& parallel) {
    Guarded out(3000);
    LogShift(parallel, 3000, z.data(), m.data(), out.data());
    return out.Take();
  });
  ExpectClose(y, expected, 2e-7);
}

}  // namespace
}  // namespace mgc::cpu
