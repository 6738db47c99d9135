// Activations. Every result element depends on its own operands only, so that any split gives the
// same bits. A result may be the same array as an operand.
#ifndef MGC_KERNELS_CPU_ACTIVATION_ACTIVATION_H_
#define MGC_KERNELS_CPU_ACTIVATION_ACTIVATION_H_

#include <cstdint>

#include "kernels/parallel.h"

namespace mgc::cpu {

// The tanh form of GELU: x/2 · (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), Hendrycks and Gimpel,
// arXiv:1606.08415.
void Gelu(Parallel& parallel, int64_t n, const float* x, float* y);
// dx = dy · gelu'(x)
void GeluGrad(Parallel& parallel, int64_t n, const float* dy, const float* x, float* dx);
// y[r, c] = gelu(x[r, c] + bias[c])
void BiasGelu(Parallel& parallel, int64_t rows, int64_t cols, const float* x, const float* bias,
              float* y);
// dx[r, c] = dy[r, c] · gelu'(x[r, c] + bias[c])
void BiasGeluGrad(Parallel& parallel, int64_t rows, int64_t cols, const float* dy, const float* x,
                  const float* bias, float* dx);

// GELU itself, x · the normal distribution's share below x.
void GeluErf(Parallel& parallel, int64_t n, const float* x, float* y);
void GeluErfGrad(Parallel& parallel, int64_t n, const float* dy, const float* x, float* dx);
// y = gelu(gate) · up, in the tanh form
void Geglu(Parallel& parallel, int64_t n, const float* gate, const float* up, float* y);
void GegluGrad(Parallel& parallel, int64_t n, const float* dy, const float* gate, const float* up,
               float* dgate, float* dup);

// y = cap · tanh(x / cap), cap > 0
void SoftCap(Parallel& parallel, int64_t n, float cap, const float* x, float* y);
void SoftCapGrad(Parallel& parallel, int64_t n, float cap, const float* dy, const float* x,
                 float* dx);

// log(1 + exp(x)), whose slope is sigmoid(x)
void Softplus(Parallel& parallel, int64_t n, const float* x, float* y);
void SoftplusGrad(Parallel& parallel, int64_t n, const float* dy, const float* x, float* dx);

// x · sigmoid(x)
void Silu(Parallel& parallel, int64_t n, const float* x, float* y);
void SiluGrad(Parallel& parallel, int64_t n, const float* dy, const float* x, float* dx);
// y = silu(gate) · up
void Swiglu(Parallel& parallel, int64_t n, const float* gate, const float* up, float* y);
void SwigluGrad(Parallel& parallel, int64_t n, const float* dy, const float* gate, const float* up,
                float* dgate, float* dup);

}  // namespace mgc::cpu

#endif  // MGC_KERNELS_CPU_ACTIVATION_ACTIVATION_H_
