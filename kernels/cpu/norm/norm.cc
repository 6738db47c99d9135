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

template <class T>
void LayerNorm(Parallel& parallel, int64_t rows, int64_t cols, float eps, const T* x,
               const float* w, const float* b, T* y, float* mean, float* rstd) {
  parallel.For(rows, RowGrain(cols), [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, NormRows, begin, end, cols, eps, x, w, b, y, mean, rstd);
  });
}

template <class T>
void LayerNormGrad(Parallel& parallel, int64_t rows, int64_t cols, const T* dy, const T* x,
                   const float* w, const float* mean, const float* rstd, T* dx) {
  parallel.For(rows, RowGrain(cols), [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, NormGradRows, begin, end, cols, dy, x, w, mean, rstd, dx);
  });
}

template <class T>
void LayerNormParamGrad(Parallel& parallel, int64_t rows, int64_t cols, const T* dy, const T* x,
                        const float* mean, const float* rstd, bool accumulate, float* dw,
                        float* db) {
  parallel.For(cols, ColGrain(rows), [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, NormParamGradCols, begin, end, rows, cols, dy, x, mean, rstd,
                  accumulate, dw, db);
  });
}

template <class T>
void RmsNorm(Parallel& parallel, int64_t rows, int64_t cols, float eps, const T* x, const float* w,
             T* y, float* rstd) {
  parallel.For(rows, RowGrain(cols), [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, NormRows, begin, end, cols, eps, x, w, nullptr, y, nullptr, rstd);
  });
}

template <class T>
void RmsNormGrad(Parallel& parallel, int64_t rows, int64_t cols, const T* dy, const T* x,
                 const float* w, const float* rstd, T* dx) {
  parallel.For(rows, RowGrain(cols), [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, NormGradRows, begin, end, cols, dy, x, w, nullptr, rstd, dx);
  });
}

template <class T>
void RmsNormParamGrad(Parallel& parallel, int64_t rows, int64_t cols, const T* dy, const T* x,
                      const float* rstd, bool accumulate, float* dw) {
  parallel.For(cols, ColGrain(rows), [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, NormParamGradCols, begin, end, rows, cols, dy, x, nullptr, rstd,
                  accumulate, dw, nullptr);
  });
}

template void LayerNorm(Parallel&, int64_t, int64_t, float, const float*, const float*,
                        const float*, float*, float*, float*);
template void LayerNorm(Parallel&, int64_t, int64_t, float, const Bfloat16*, const float*,
                        const float*, Bfloat16*, float*, float*);
template void LayerNorm(Parallel&, int64_t, int64_t, float, const Float16*, const float*,
                        const float*, Float16*, float*, float*);
template void LayerNormGrad(Parallel&, int64_t, int64_t, const float*, const float*, const float*,
                            const float*, const float*, float*);
template void LayerNormGrad(Parallel&, int64_t, int64_t, const Bfloat16*, const Bfloat16*,
                            const float*, const float*, const float*, Bfloat16*);
template void LayerNormGrad(Parallel&, int64_t, int64_t, const Float16*, const Float16*,
                            const float*, const float*, const float*, Float16*);
template void LayerNormParamGrad(Parallel&, int64_t, int64_t, const float*, const float*,
                                 const float*, const float*, bool, float*, float*);
template void LayerNormParamGrad(Parallel&, int64_t, int64_t, const Bfloat16*, const Bfloat16*,
                                 const float*, const float*, bool, float*, float*);
template void LayerNormParamGrad(Parallel&, int64_t, int64_t, const Float16*, const Float16*,
                                 const float*, const float*, bool, float*, float*);
template void RmsNorm(Parallel&, int64_t, int64_t, float, const float*, const float*, float*,
                      float*);
template void RmsNorm(Parallel&, int64_t, int64_t, float, const Bfloat16*, const float*, Bfloat16*,
                      float*);
template void RmsNorm(Parallel&, int64_t, int64_t, float, const Float16*, const float*, Float16*,
                      float*);
template void RmsNormGrad(Parallel&, int64_t, int64_t, const float*, const float*, const float*,
                          const float*, float*);
template void RmsNormGrad(Parallel&, int64_t, int64_t, const Bfloat16*, const Bfloat16*,
                          const float*, const float*, Bfloat16*);
template void RmsNormGrad(Parallel&, int64_t, int64_t, const Float16*, const Float16*, const float*,
                          const float*, Float16*);
template void RmsNormParamGrad(Parallel&, int64_t, int64_t, const float*, const float*,
                               const float*, bool, float*);
template void RmsNormParamGrad(Parallel&, int64_t, int64_t, const Bfloat16*, const Bfloat16*,
                               const float*, bool, float*);
template void RmsNormParamGrad(Parallel&, int64_t, int64_t, const Float16*, const Float16*,
                               const float*, bool, float*);

}  // namespace mgc::cpu
