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
// y[i] = gelu(x[i] + bias[i % cols]), the sum rounded to T as if it were stored
template <class T>
int BiasGelu(Stream stream, int64_t n, int64_t cols, const T* x, const T* bias, T* y);
// dx[i] = dy[i] · gelu'(x[i] + bias[i % cols])
template <class T>
int BiasGeluGrad(Stream stream, int64_t n, int64_t cols, const T* dy, const T* x, const T* bias,
                 T* dx);

// GELU itself, x · the normal distribution's share below x.
template <class T>
int GeluErf(Stream stream, int64_t n, const T* x, T* y);
template <class T>
int GeluErfGrad(Stream stream, int64_t n, const T* dy, const T* x, T* dx);
// y = gelu(gate) · up, in the tanh form
template <class T>
int Geglu(Stream stream, int64_t n, const T* gate, const T* up, T* y);
template <class T>
int GegluGrad(Stream stream, int64_t n, const T* dy, const T* gate, const T* up, T* dgate, T* dup);

// y = cap · tanh(x / cap), cap > 0
template <class T>
int SoftCap(Stream stream, int64_t n, float cap, const T* x, T* y);
template <class T>
int SoftCapGrad(Stream stream, int64_t n, float cap, const T* dy, const T* x, T* dx);

// log(1 + exp(x)), whose slope is sigmoid(x)
template <class T>
int Softplus(Stream stream, int64_t n, const T* x, T* y);
template <class T>
int SoftplusGrad(Stream stream, int64_t n, const T* dy, const T* x, T* dx);

// x · sigmoid(x)
template <class T>
int Silu(Stream stream, int64_t n, const T* x, T* y);
template <class T>
int SiluGrad(Stream stream, int64_t n, const T* dy, const T* x, T* dx);
// y = silu(gate) · up
template <class T>
int Swiglu(Stream stream, int64_t n, const T* gate, const T* up, T* y);
template <class T>
int SwigluGrad(Stream stream, int64_t n, const T* dy, const T* gate, const T* up, T* dgate, T* dup);

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_ACTIVATION_ACTIVATION_H_
