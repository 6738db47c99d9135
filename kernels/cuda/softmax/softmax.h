// Softmax over rows, issued to a stream. T is float, Bfloat16 or Float16; sums are of f64, the rest
// of f32, rounded once where a result is written.

#ifndef MGC_KERNELS_CUDA_SOFTMAX_SOFTMAX_H_
#define MGC_KERNELS_CUDA_SOFTMAX_SOFTMAX_H_

#include <cstdint>

#include "kernels/cuda/launch_shape.h"

namespace mgc::cuda {

// y = exp(x - m) · (1 / z), m the row's maximum, z the sum of exp(x - m). `y` may be `x`.
template <class T>
int Softmax(Stream stream, int64_t rows, int64_t cols, const T* x, T* y);
// dx = y · (dy - the row's sum of dy · y). `dx` may be `dy` or `y`.
template <class T>
int SoftmaxGrad(Stream stream, int64_t rows, int64_t cols, const T* dy, const T* y, T* dx);

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_SOFTMAX_SOFTMAX_H_
