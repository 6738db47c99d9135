// LayerNorm and RMSNorm over the last dim, and their gradients. Rows are independent: a row's
// results do not depend on which other rows are in the call. Sums over rows ascend in blocks of
// fixed size; they depend on nothing but the rows.
#ifndef MGC_KERNELS_CPU_NORM_NORM_H_
#define MGC_KERNELS_CPU_NORM_NORM_H_

#include <cstdint>

#include "kernels/parallel.h"

namespace mgc::cpu {

// y = (x - mean) · rstd · w + b with mean and rstd = 1 / sqrt(variance + eps) of each row (Ba,
// Kiros, Hinton, arXiv:1607.06450). x, y: [rows, cols]; w, b: [cols]; mean, rstd: [rows].
template <class T>
void LayerNorm(Parallel& parallel, int64_t rows, int64_t cols, float eps, const T* x,
               const float* w, const float* b, T* y, float* mean, float* rstd);

// dx = rstd · (g - mean(g) - x̂ · mean(g · x̂)) with g = dy · w and x̂ = (x - mean) · rstd.
template <class T>
void LayerNormGrad(Parallel& parallel, int64_t rows, int64_t cols, const T* dy, const T* x,
                   const float* w, const float* mean, const float* rstd, T* dx);

// dw = sum over rows of dy · x̂, db = sum over rows of dy; added to dw and db if `accumulate`.
template <class T>
void LayerNormParamGrad(Parallel& parallel, int64_t rows, int64_t cols, const T* dy, const T* x,
                        const float* mean, const float* rstd, bool accumulate, float* dw,
                        float* db);

// y = x · rstd · w with rstd = 1 / sqrt(mean(x²) + eps) (Zhang, Sennrich, arXiv:1910.07467).
template <class T>
void RmsNorm(Parallel& parallel, int64_t rows, int64_t cols, float eps, const T* x, const float* w,
             T* y, float* rstd);

// dx = rstd · (g - x̂ · mean(g · x̂)) with g = dy · w and x̂ = x · rstd.
template <class T>
void RmsNormGrad(Parallel& parallel, int64_t rows, int64_t cols, const T* dy, const T* x,
                 const float* w, const float* rstd, T* dx);

// dw = sum over rows of dy · x̂; added to dw if `accumulate`.
template <class T>
void RmsNormParamGrad(Parallel& parallel, int64_t rows, int64_t cols, const T* dy, const T* x,
                      const float* rstd, bool accumulate, float* dw);

}  // namespace mgc::cpu

#endif  // MGC_KERNELS_CPU_NORM_NORM_H_
