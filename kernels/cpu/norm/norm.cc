#include "kernels/cpu/norm/norm.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/simd/simd.h"

#define MGC_SIMD_BODY "kernels/cpu/norm/norm.inc"
#include "kernels/cpu/simd/simd_each.inc"

namespace mgc::cpu {
namespace {

int64_t RowGrain(int64_t cols) { return std::max<int64_t>(8192 / std::max<int64_t>(cols, 1), 1); }

// Columns worth a hand-over when each is a sum over `rows`; whole cache lines.
int64_t ColGrain(int64_t rows) {
  return std::max<int64_t>(16384 / std::max<int64_t>(rows, 1) / 64, 1) * 64;
}

}  // namespace

void LayerNorm(Parallel& parallel, int64_t rows, int64_t cols, float eps, const float* x,
               const float* w, const float* b, float* y, float* mean, float* rstd) {
  parallel.For(rows, RowGrain(cols), [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(NormRows, begin, end, cols, eps, x, w, b, y, mean, rstd);
  });
}

void LayerNormGrad(Parallel& parallel, int64_t rows, int64_t cols, const float* dy, const float* x,
                   const float* w, const float* mean, const float* rstd, float* dx) {
  parallel.For(rows, RowGrain(cols), [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(NormGradRows, begin, end, cols, dy, x, w, mean, rstd, dx);
  });
}

void LayerNormParamGrad(Parallel& parallel, int64_t rows, int64_t cols, const float* dy,
                        const float* x, const float* mean, const float* rstd, bool accumulate,
                        float* dw, float* db) {
  parallel.For(cols, ColGrain(rows), [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(NormParamGradCols, begin, end, rows, cols, dy, x, mean, rstd, accumulate, dw, db);
  });
}

void RmsNorm(Parallel& parallel, int64_t rows, int64_t cols, float eps, const float* x,
             const float* w, float* y, float* rstd) {
  parallel.For(rows, RowGrain(cols), [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(NormRows, begin, end, cols, eps, x, w, nullptr, y, nullptr, rstd);
  });
}

void RmsNormGrad(Parallel& parallel, int64_t rows, int64_t cols, const float* dy, const float* x,
                 const float* w, const float* rstd, float* dx) {
  parallel.For(rows, RowGrain(cols), [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(NormGradRows, begin, end, cols, dy, x, w, nullptr, rstd, dx);
  });
}

void RmsNormParamGrad(Parallel& parallel, int64_t rows, int64_t cols, const float* dy,
                      const float* x, const float* rstd, bool accumulate, float* dw) {
  parallel.For(cols, ColGrain(rows), [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(NormParamGradCols, begin, end, rows, cols, dy, x, nullptr, rstd, accumulate, dw,
                  nullptr);
  });
}

}  // namespace mgc::cpu
