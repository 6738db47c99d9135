// Activations, issued to a stream. A result may be the same array as an operand of its size. T is
// float, Bfloat16 or Float16; arithmetic is that of f32, rounded once where a result is written.

#ifndef MGC_KERNELS_CUDA_ACTIVATION_ACTIVATION_H_
#define MGC_KERNELS_CUDA_ACTIVATION_ACTIVATION_H_

#include <cstdint>

#include "kernels/cuda/launch_shape.h"

namespace mgc::cuda {

// The tanh form of GELU: x/2 · (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), Hendrycks and Gimpel,
// arXiv:1606.08415.
template <class T>
int Gelu(Stream stream, int64_t n, const T* x, T* y);
// dx = dy · gelu'(x)
template <class T>
int GeluGrad(Stream stream, int64_t n, const T* dy, const T* x, T* dx);

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_ACTIVATION_ACTIVATION_H_
