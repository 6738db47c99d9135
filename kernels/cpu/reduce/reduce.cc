#include "kernels/cpu/reduce/reduce.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "kernels/cpu/simd/simd.h"

#define MGC_SIMD_BODY "kernels/cpu/reduce/reduce.inc"
#include "kernels/cpu/simd/simd_each.inc"

namespace mgc::cpu {
namespace {

constexpr int64_t kBlock = 8192;  // elements of one partial sum; part of the bits
constexpr int64_t kGrain = 16384;

// Sums blocks into the workspace, then adds these in ascending order.
double SumBlocks(Parallel& parallel, int64_t n, double* workspace,
                 absl::FunctionRef<double(int64_t begin, int64_t count)> sum) {
  const int64_t blocks = SumWorkspaceDoubles(n);
  parallel.For(blocks, 2, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      workspace[b] = sum(b * kBlock, std::min(kBlock, n - b * kBlock));
    }
  });
  double total = 0;
  for (int64_t b = 0; b < blocks; ++b) total += workspace[b];
  return total;
}

}  // namespace

int64_t SumWorkspaceDoubles(int64_t n) { return (n + kBlock - 1) / kBlock; }

double Sum(Parallel& parallel, int64_t n, const float* x, double* workspace) {
  return SumBlocks(parallel, n, workspace, [&](int64_t begin, int64_t count) {
    return MGC_SIMD_CALL(parallel, SumOf, count, x + begin);
  });
}

double SumOfSquares(Parallel& parallel, int64_t n, const float* x, double* workspace) {
  return SumOfProducts(parallel, n, x, x, workspace);
}

double SumOfProducts(Parallel& parallel, int64_t n, const float* x, const float* y,
                     double* workspace) {
  return SumBlocks(parallel, n, workspace, [&](int64_t begin, int64_t count) {
    return MGC_SIMD_CALL(parallel, SumOfProductsOf, count, x + begin, y + begin);
  });
}

template <class T>
void SumMiddle(Parallel& parallel, int64_t outer, int64_t reduced, int64_t inner, const T* x,
               bool accumulate, float* y) {
  if (inner == 1) {
    const int64_t grain = std::max<int64_t>(kGrain / std::max<int64_t>(reduced, 1), 1);
    parallel.For(outer, grain, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const float sum =
            static_cast<float>(MGC_SIMD_CALL(parallel, SumOf, reduced, x + o * reduced));
        y[o] = accumulate ? y[o] + sum : sum;
      }
    });
    return;
  }
  const int64_t grain = std::max<int64_t>(kGrain / std::max<int64_t>(reduced, 1) / 64, 1) * 64;
  for (int64_t o = 0; o < outer; ++o) {
    const T* from = x + o * reduced * inner;
    float* to = y + o * inner;
    parallel.For(inner, grain, [&](int64_t begin, int64_t end) {
      MGC_SIMD_CALL(parallel, SumRowsCols, begin, end, reduced, inner, from, accumulate, to);
    });
  }
}

template void SumMiddle(Parallel&, int64_t, int64_t, int64_t, const float*, bool, float*);
template void SumMiddle(Parallel&, int64_t, int64_t, int64_t, const Bfloat16*, bool, float*);
template void SumMiddle(Parallel&, int64_t, int64_t, int64_t, const Float16*, bool, float*);

template <class T, class Result>
void RowMax(Parallel& parallel, int64_t rows, int64_t cols, int64_t valid, const T* x, Result* y) {
  const int64_t grain = std::max<int64_t>(kGrain / std::max<int64_t>(cols, 1), 1);
  parallel.For(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      MGC_SIMD_CALL(parallel, MaxOf, valid, x + r * cols, y + r);
  });
}

template void RowMax(Parallel&, int64_t, int64_t, int64_t, const float*, float*);
template void RowMax(Parallel&, int64_t, int64_t, int64_t, const Bfloat16*, Bfloat16*);
template void RowMax(Parallel&, int64_t, int64_t, int64_t, const Float16*, Float16*);
template void RowMax(Parallel&, int64_t, int64_t, int64_t, const Bfloat16*, float*);
template void RowMax(Parallel&, int64_t, int64_t, int64_t, const Float16*, float*);

}  // namespace mgc::cpu
