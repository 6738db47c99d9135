// LayerNorm and RMSNorm over the last dim, and their gradients. Rows are independent: a row's
// results do not depend on which other rows are in the call. x, y, dx, dy: [rows, cols], of T
// (float, Bfloat16 or Float16); all else is of f32, w and b: [cols], mean and rstd: [rows].
// Arithmetic is that of f32, but sums over rows' elements are of f64; results are rounded once.

#ifndef MGC_KERNELS_CUDA_NORM_NORM_H_
#define MGC_KERNELS_CUDA_NORM_NORM_H_

#include <cstdint>

#include "kernels/cuda/device/strip_shape.h"
#include "kernels/cuda/launch_shape.h"

namespace mgc::cuda {

struct NormShape {
  int64_t rows = 0;
  int64_t cols = 0;  // at most kMostRowElements
};

// y = (x - mean) · rstd · w + b with mean and rstd = 1 / sqrt(variance + eps) of each row (Ba,
// Kiros, Hinton, arXiv:1607.06450). y may be x.
template <class T>
int LayerNorm(Stream stream, const NormShape& shape, float eps, const T* x, const float* w,
              const float* b, T* y, float* mean, float* rstd);

// dx = rstd · (g - mean(g) - x̂ · mean(g · x̂)) with g = dy · w and x̂ = (x - mean) · rstd. dx may
// be dy or x.
template <class T>
int LayerNormGrad(Stream stream, const NormShape& shape, const T* dy, const T* x, const float* w,
                  const float* mean, const float* rstd, T* dx);

// dw = sum over rows of dy · x̂, db = sum over rows of dy; in parts where there is room.
template <class T>
int LayerNormParamGrad(Stream stream, const NormShape& shape, const PartsRoom& room, const T* dy,
                       const T* x, const float* mean, const float* rstd, float* dw, float* db);

// y = x · rstd · w with rstd = 1 / sqrt(mean(x²) + eps) (Zhang, Sennrich, arXiv:1910.07467). y may
// be x.
template <class T>
int RmsNorm(Stream stream, const NormShape& shape, float eps, const T* x, const float* w, T* y,
            float* rstd);

// dx = rstd · (g - x̂ · mean(g · x̂)) with g = dy · w and x̂ = x · rstd. dx may be dy or x.
template <class T>
int RmsNormGrad(Stream stream, const NormShape& shape, const T* dy, const T* x, const float* w,
                const float* rstd, T* dx);

// dw = sum over rows of dy · x̂, likewise.
template <class T>
int RmsNormParamGrad(Stream stream, const NormShape& shape, const PartsRoom& room, const T* dy,
                     const T* x, const float* rstd, float* dw);

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_NORM_NORM_H_
