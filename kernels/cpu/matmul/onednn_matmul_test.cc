#include "kernels/cpu/matmul/onednn_matmul.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/matmul/gemm_test_util.h"
#include "kernels/cpu/test_util.h"
#include "kernels/parallel.h"

namespace mgc::cpu {
namespace {

// Largest difference from our own product, which has tests of its own.
double Difference(const GemmShape& s) {
  const std::vector<float> a = Uniform(s.batch * s.m * s.k, 1);
  const std::vector<float> b = Uniform(s.batch * s.k * s.n, 2);
  std::vector<float> ours = Uniform(s.batch * s.m * s.n, 3);
  std::vector<float> theirs = ours;
  std::vector<float> workspace(static_cast<size_t>(GemmWorkspaceFloats(s.m, s.n, s.k, 1)));
  SerialParallel serial;
  Gemm(serial, s, a.data(), b.data(), nullptr, ours.data(), workspace.data());
  const auto product = OneDnnMatmul::Create(s);
  if (!product.ok()) return INFINITY;
  (*product)->Run(a.data(), b.data(), theirs.data());
  double largest = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    largest = std::max(largest, std::fabs(double{ours[i]} - theirs[i]));
  }
  return largest;
}

GemmShape Shape(int64_t batch, bool transpose_a, bool transpose_b, bool accumulate) {
  GemmShape s;
  s.batch = batch;
  s.m = 20;
  s.n = 33;
  s.k = 48;
  s.a = transpose_a ? TransposedStrides(s.m, s.k) : DenseStrides(s.m, s.k);
  s.b = transpose_b ? TransposedStrides(s.k, s.n) : DenseStrides(s.k, s.n);
  s.c = DenseStrides(s.m, s.n);
  s.accumulate = accumulate;
  return s;
}

TEST(OneDnnMatmul, ComputesTheSameProducts) {
  for (int64_t batch : {1, 3}) {
    for (int bits = 0; bits < 8; ++bits) {
      const GemmShape s = Shape(batch, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0);
      EXPECT_LT(Difference(s), 2e-5) << "batch " << batch << ", case " << bits;
    }
  }
}

// The same of the packed product in bf16, whose C is bf16 or, where it accumulates, f32.
template <class T>
double PackedDifference(const OneDnnPackedMatmul& product, const GemmShape& s,
                        const std::vector<Bfloat16>& a, const std::vector<Bfloat16>& b) {
  std::vector<T> ours = AllOf<T>(Uniform(s.m * s.n, 3));
  std::vector<T> theirs = ours;
  std::vector<float> workspace(static_cast<size_t>(NarrowGemmWorkspaceFloats(s.m, s.n, s.k, 1)));
  SerialParallel serial;
  Gemm(serial, s, a.data(), b.data(), nullptr, ours.data(), workspace.data());
  product.Run(theirs.data());
  double largest = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    largest = std::max(largest, std::fabs(double{Wide(ours[i])} - Wide(theirs[i])));
  }
  return largest;
}

TEST(OneDnnPackedMatmul, ComputesTheSameProducts) {
  for (int bits = 0; bits < 8; ++bits) {
    const GemmShape s = Shape(1, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0);
    const std::vector<Bfloat16> a = AllOf<Bfloat16>(Uniform(s.m * s.k, 1));
    const std::vector<Bfloat16> b = AllOf<Bfloat16>(Uniform(s.k * s.n, 2));
    const auto product = OneDnnPackedMatmul::Create(s, a.data(), b.data());
    if (!product.ok()) GTEST_SKIP() << product.status();
    EXPECT_FALSE((*product)->implementation().empty());
    // Results are below 16, where neighbours in bf16 are 2^-4 apart.
    const double difference = s.accumulate ? PackedDifference<float>(**product, s, a, b)
                                           : PackedDifference<Bfloat16>(**product, s, a, b);
    EXPECT_LE(difference, s.accumulate ? 2e-5 : 1.0 / 16) << "case " << bits;
  }
}

TEST(OneDnnMatmul, RefusesWhatItCannotDo) {
  GemmShape s = Shape(1, false, false, false);
  s.m = -4;
  EXPECT_FALSE(OneDnnMatmul::Create(s).ok());
}

}  // namespace
}  // namespace mgc::cpu
