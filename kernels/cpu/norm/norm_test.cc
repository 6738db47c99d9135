#include "kernels/cpu/norm/norm.h"

#include "gtest/gtest.h"
#include "kernels/cpu/test_util.h"

namespace mgc::cpu {
namespace {

constexpr float kEps = 1e-5f;

struct Case {
  int64_t rows, cols;
  bool centered;  // LayerNorm, else RMSNorm
  std::vector<float> x, w, b, dy;
};

Case Make(int64_t rows, int64_t cols, bool centered) {
  return {rows,
          cols,
          centered,
          Uniform(rows * cols, 1, -2, 3),
          Uniform(cols, 2),
          Uniform(cols, 3),
          Uniform(rows * cols, 4)};
}

// y, dx, then dw, db, mean, rstd.
struct Result {
  std::vector<double> y, dx, dw, db, mean, rstd;
};

void NaiveRow(const Case& c, size_t r, Result* result) {
  const size_t n = static_cast<size_t>(c.cols);
  const float* x = &c.x[r * n];
  const float* dy = &c.dy[r * n];
  double mean = 0, square = 0, whole = 0, along = 0;
  for (size_t i = 0; i < n; ++i) mean += c.centered ? x[i] / static_cast<double>(n) : 0;
  for (size_t i = 0; i < n; ++i) square += (x[i] - mean) * (x[i] - mean) / static_cast<double>(n);
  const double rstd = 1 / std::sqrt(square + kEps);
  for (size_t i = 0; i < n; ++i) {
    const double g = double{dy[i]} * c.w[i], unit = (x[i] - mean) * rstd;
    whole += c.centered ? g / static_cast<double>(n) : 0;
    along += g * unit / static_cast<double>(n);
  }
  for (size_t i = 0; i < n; ++i) {
    const double unit = (x[i] - mean) * rstd;
    result->y.push_back(unit * c.w[i] + (c.centered ? c.b[i] : 0));
    result->dx.push_back(rstd * (double{dy[i]} * c.w[i] - whole - unit * along));
    result->dw[i] += dy[i] * unit;
    result->db[i] += dy[i];
  }
  result->mean.push_back(mean);
  result->rstd.push_back(rstd);
}

Result Naive(const Case& c) {
  Result result;
  result.dw.resize(static_cast<size_t>(c.cols));
  result.db.resize(static_cast<size_t>(c.cols));
  for (int64_t r = 0; r < c.rows; ++r) NaiveRow(c, static_cast<size_t>(r), &result);
  return result;
}

// y, mean, rstd, dx, dw, db one after another; RMSNorm's missing ones are empty.
std::vector<std::vector<float>> Kernels(Parallel& parallel, const Case& c) {
  const int64_t n = c.rows * c.cols;
  Guarded y(n), mean(c.rows), rstd(c.rows), dx(n), dw(c.cols), db(c.cols);
  const float* x = c.x.data();
  const float* dy = c.dy.data();
  if (c.centered) {
    LayerNorm(parallel, c.rows, c.cols, kEps, x, c.w.data(), c.b.data(), y.data(), mean.data(),
              rstd.data());
    LayerNormGrad(parallel, c.rows, c.cols, dy, x, c.w.data(), mean.data(), rstd.data(), dx.data());
    LayerNormParamGrad(parallel, c.rows, c.cols, dy, x, mean.data(), rstd.data(), false, dw.data(),
                       db.data());
    return {y.Take(), mean.Take(), rstd.Take(), dx.Take(), dw.Take(), db.Take()};
  }
  RmsNorm(parallel, c.rows, c.cols, kEps, x, c.w.data(), y.data(), rstd.data());
  RmsNormGrad(parallel, c.rows, c.cols, dy, x, c.w.data(), rstd.data(), dx.data());
  RmsNormParamGrad(parallel, c.rows, c.cols, dy, x, rstd.data(), false, dw.data());
  return {y.Take(), {}, rstd.Take(), dx.Take(), dw.Take(), {}};
}

TEST(Norm, AgreesWithTheDefinition) {
  for (bool centered : {true, false}) {
    for (int64_t rows : {1, 3, 150}) {
      for (int64_t cols : {1, 5, 16, 33, 257, 1030}) {
        SCOPED_TRACE(std::to_string(rows) + " " + std::to_string(cols));
        const Case c = Make(rows, cols, centered);
        OverWidths([&](Parallel& parallel) { return Joined(Kernels(parallel, c)); });
        SerialParallel serial;
        const std::vector<std::vector<float>> actual = Kernels(serial, c);
        const Result expected = Naive(c);
        // A single column has no variance: dx is the difference of equal numbers, and only its size
        // can be checked.
        const double tolerance = cols == 1 ? 1e-3 : 2e-6;
        ExpectClose(actual[0], expected.y, 2e-6);
        if (cols > 1) ExpectClose(actual[3], expected.dx, tolerance);
        ExpectClose(actual[4], expected.dw, 2e-6);
        ExpectClose(actual[2], expected.rstd, 2e-6);
        if (centered) ExpectClose(actual[1], expected.mean, 2e-6);
        if (centered) ExpectClose(actual[5], expected.db, 2e-6);
      }
    }
  }
}

TEST(Norm, RowsDoNotDependOnOtherRows) {
  for (bool centered : {true, false}) {
    const Case whole = Make(20, 100, centered);
    Case part = whole;
    part.rows = 7;
    part.x.assign(whole.x.begin() + 500, whole.x.begin() + 1200);
    part.dy.assign(whole.dy.begin() + 500, whole.dy.begin() + 1200);
    SerialParallel serial;
    const auto all = Kernels(serial, whole), some = Kernels(serial, part);
    for (int result : {0, 3}) {
      const std::vector<float>& from = all[static_cast<size_t>(result)];
      EXPECT_TRUE(SameBits(some[static_cast<size_t>(result)],
                           std::vector<float>(from.begin() + 500, from.begin() + 1200)));
    }
  }
}

TEST(Norm, ParameterGradientsAccumulate) {
  const Case c = Make(90, 70, true);
  const Result naive = Naive(c);
  std::vector<double> expected_dw, expected_db;
  const std::vector<float> old = Uniform(70, 9);
  for (size_t i = 0; i < old.size(); ++i) {
    expected_dw.push_back(old[i] + naive.dw[i]);
    expected_db.push_back(old[i] + naive.db[i]);
  }
  SerialParallel serial;
  Guarded dw(old), db(old), rms(old);
  const std::vector<float> mean(naive.mean.begin(), naive.mean.end());
  const std::vector<float> rstd(naive.rstd.begin(), naive.rstd.end());
  LayerNormParamGrad(serial, c.rows, c.cols, c.dy.data(), c.x.data(), mean.data(), rstd.data(),
                     true, dw.data(), db.data());
  ExpectClose(dw.Take(), expected_dw, 2e-6);
  ExpectClose(db.Take(), expected_db, 2e-6);
  const Case r = Make(90, 70, false);
  const Result root = Naive(r);
  for (size_t i = 0; i < old.size(); ++i) expected_dw[i] = old[i] + root.dw[i];
  const std::vector<float> root_rstd(root.rstd.begin(), root.rstd.end());
  RmsNormParamGrad(serial, r.rows, r.cols, r.dy.data(), r.x.data(), root_rstd.data(), true,
                   rms.data());
  ExpectClose(rms.Take(), expected_dw, 2e-6);
}

}  // namespace
}  // namespace mgc::cpu
