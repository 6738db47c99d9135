#include "kernels/cpu/matmul/gemm.h"

#include <string>

#include "gtest/gtest.h"
#include "kernels/cpu/test_util.h"

namespace mgc::cpu {
namespace {

// Elements from the first to the last of a strided operand.
int64_t Extent(const GemmStrides& s, int64_t batch, int64_t rows, int64_t cols) {
  if (batch * rows * cols == 0) return 0;
  return (batch - 1) * s.batch + (rows - 1) * s.row + (cols - 1) * s.col + 1;
}

struct Operands {
  std::vector<float> a, b, c, bias;
};

Operands Draw(const GemmShape& s, uint32_t seed) {
  return {Uniform(Extent(s.a, s.batch, s.m, s.k), seed),
          Uniform(Extent(s.b, s.batch, s.k, s.n), seed + 1),
          Uniform(Extent(s.c, s.batch, s.m, s.n), seed + 2), Uniform(s.n, seed + 3)};
}

std::vector<float> Product(Parallel& parallel, const GemmShape& s, const Operands& x, bool bias) {
  std::vector<float> workspace(
      static_cast<size_t>(GemmWorkspaceFloats(s.m, s.n, s.k, parallel.width())), std::nanf(""));
  Guarded c(x.c);
  Gemm(parallel, s, x.a.data(), x.b.data(), bias ? x.bias.data() : nullptr, c.data(),
       workspace.data());
  return c.Take();
}

// Elements between the rows of C keep what they had.
std::vector<double> Expected(const GemmShape& s, const Operands& x, bool bias) {
  std::vector<double> c(x.c.begin(), x.c.end());
  for (int64_t i = 0; i < s.batch * s.m * s.n; ++i) {
    const int64_t batch = i / (s.m * s.n), row = i / s.n % s.m, col = i % s.n;
    double sum = bias ? x.bias[static_cast<size_t>(col)] : 0;
    for (int64_t k = 0; k < s.k; ++k) {
      const int64_t a = batch * s.a.batch + row * s.a.row + k * s.a.col;
      const int64_t b = batch * s.b.batch + k * s.b.row + col * s.b.col;
      sum += double{x.a[static_cast<size_t>(a)]} * x.b[static_cast<size_t>(b)];
    }
    double& to = c[static_cast<size_t>(batch * s.c.batch + row * s.c.row + col * s.c.col)];
    to = s.accumulate ? to + sum : sum;
  }
  return c;
}

GemmShape Dense(int64_t m, int64_t n, int64_t k) {
  GemmShape s;
  s.m = m;
  s.n = n;
  s.k = k;
  s.a = DenseStrides(m, k);
  s.b = DenseStrides(k, n);
  s.c = DenseStrides(m, n);
  return s;
}

// Relative to the largest element of a product of numbers in [-1, 1): rounding of k float
// additions.
constexpr double kTolerance = 4e-6;

void Check(const GemmShape& s, bool bias = false) {
  const Operands x = Draw(s, 17);
  const std::vector<float> c =
      OverWidths([&](Parallel& parallel) { return Product(parallel, s, x, bias); });
  ExpectClose(c, Expected(s, x, bias), kTolerance);
}

TEST(Gemm, OddSizes) {
  for (int64_t m : {1, 5, 12, 13, 64}) {
    for (int64_t n : {1, 7, 32, 33, 100}) {
      for (int64_t k : {1, 2, 31, 64}) {
        SCOPED_TRACE(std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(k));
        Check(Dense(m, n, k));
      }
    }
  }
}

TEST(Gemm, LargerThanEveryBlock) {
  Check(Dense(517, 130, 801));
  Check(Dense(30, 3200, 400));
}

TEST(Gemm, TransposedOperands) {
  for (int64_t m : {9, 130}) {
    for (int64_t n : {6, 257}) {
      GemmShape s = Dense(m, n, 389);
      s.a = TransposedStrides(m, s.k);
      Check(s);
      s.b = TransposedStrides(s.k, n);
      Check(s);
      s.a = DenseStrides(m, s.k);
      s.accumulate = true;
      Check(s);
    }
  }
}

TEST(Gemm, Bias) {
  GemmShape s = Dense(37, 75, 500);
  Check(s, true);
  s.accumulate = true;
  Check(s, true);
}

TEST(Gemm, ResultByColumns) {
  GemmShape s = Dense(45, 70, 390);
  s.c = TransposedStrides(45, 70);
  Check(s);
  s.accumulate = true;
  Check(s);
}

TEST(Gemm, SlicesAndSteps) {
  GemmShape s;
  s.batch = 3;
  s.m = 20;
  s.n = 41;
  s.k = 65;
  s.a = {5000, 150, 2};
  s.b = {9000, 130, 3};
  s.c = {3000, 77, 1};
  Check(s);
  s.b.batch = 0;  // one right side for all
  Check(s);
}

TEST(Gemm, NothingToSum) {
  GemmShape s = Dense(3, 5, 0);
  Check(s);
  Check(s, true);
  s.accumulate = true;
  Check(s);
  Check(Dense(0, 5, 4));
  Check(Dense(4, 0, 5));
}

// A part of the output computed alone has the bits it has in the whole, so sharded products agree
// bit by bit.
TEST(Gemm, PartsHaveTheBitsOfTheWhole) {
  const GemmShape whole = Dense(150, 210, 1000);
  const Operands x = Draw(whole, 5);
  SerialParallel serial;
  const std::vector<float> all = Product(serial, whole, x, true);
  for (int64_t rows : {1, 7, 50}) {
    for (int64_t cols : {1, 35, 70}) {
      GemmShape part = whole;
      part.m = rows;
      part.n = cols;
      for (int64_t row = 0; row + rows <= whole.m; row += 47) {
        for (int64_t col = 0; col + cols <= whole.n; col += 61) {
          Guarded c(x.c);
          std::vector<float> workspace(
              static_cast<size_t>(GemmWorkspaceFloats(rows, cols, whole.k, 1)));
          const int64_t at = row * whole.c.row + col;
          Gemm(serial, part, x.a.data() + row * whole.a.row, x.b.data() + col, x.bias.data() + col,
               c.data() + at, workspace.data());
          std::vector<float> expected = x.c;
          for (int64_t i = 0; i < rows; ++i) {
            const auto from = all.begin() + at + i * whole.c.row;
            std::copy(from, from + cols, expected.begin() + at + i * whole.c.row);
          }
          ASSERT_TRUE(SameBits(c.Take(), expected)) << rows << "x" << cols;
        }
      }
    }
  }
}

}  // namespace
}  // namespace mgc::cpu
