// Activations. Every result element depends on its own operands only, so that any split gives the
// same bits. A result may be the same array as an operand. T is float, Bfloat16 or Float16;
// arithmetic is that of f32, rounded once where a result is written.
#ifndef MGC_KERNELS_CPU_ACTIVATION_ACTIVATION_H_
#define MGC_KERNELS_CPU_ACTIVATION_ACTIVATION_H_

#include <cstdint>

#include "kernels/parallel.h"

namespace mgc::cpu {

// The tanh form of GELU: x/2 · (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), Hendrycks and Gimpel,
// arXiv:1606.08415.
template <class T>
void Gelu(Parallel& parallel, int64_t n, const T* x, T* y);
// dx = dy · gelu'(x)
template <class T>
void GeluGrad(Parallel& parallel, int64_t n, const T* dy, const T* x, T* dx);
// y[r, c] = gelu(x[r, c] + bias[c])
template <class T>
void BiasGelu(Parallel& parallel, int64_t rows, int64_t cols, const T* x, const T* bias, T* y);
// dx[r, c] = dy[r, c] · gelu'(x[r, c] + bias[c])
template <class T>
void BiasGeluGrad(Parallel& parallel, int64_t rows, int64_t cols, const T* dy, const T* x,
                  const T* bias, T* dx);

// GELU itself, x · the normal distribution's share below x.
template <class T>
void GeluErf(Parallel& parallel, int64_t n, const T* x, T* y);
template <class T>
void GeluErfGrad(Parallel& parallel, int64_t n, const T* dy, const T* x, T* dx);
// y = gelu(gate) · up, in the tanh form
template <class T>
void Geglu(Parallel& parallel, int64_t n, const T* gate, const T* up, T* y);
template <class T>
void GegluGrad(Parallel& parallel, int64_t n, const T* dy, const T* gate, const T* up, T* dgate,
               T* dup);

// y = cap · tanh(x / cap), cap > 0
template <class T>
void SoftCap(Parallel& parallel, int64_t n, float cap, const T* x, T* y);
template <class T>
void SoftCapGrad(Parallel& parallel, int64_t n, float cap, const T* dy, const T* x, T* dx);

// log(1 + exp(x)), whose slope is sigmoid(x)
template <class T>
void Softplus(Parallel& parallel, int64_t n, const T* x, T* y);
template <class T>
void SoftplusGrad(Parallel& parallel, int64_t n, const T* dy, const T* x, T* dx);

// x · sigmoid(x)
template <class T>
void Silu(Parallel& parallel, int64_t n, const T* x, T* y);
template <class T>
void SiluGrad(Parallel& parallel, int64_t n, const T* dy, const T* x, T* dx);
// y = silu(gate) · up
template <class T>
void Swiglu(Parallel& parallel, int64_t n, const T* gate, const T* up, T* y);
template <class T>
void SwigluGrad(Parallel& parallel, int64_t n, const T* dy, const T* gate, const T* up, T* dgate,
                T* dup);

}  // namespace mgc::cpu

#endif  // MGC_KERNELS_CPU_ACTIVATION_ACTIVATION_H_
