// The parameter update, issued to a stream. Numbers are scalars of f64 in the device's memory: a
// step is issued before they are known. Tensors are of f32, and so is arithmetic with them.

#ifndef MGC_KERNELS_CUDA_OPTIMIZER_OPTIMIZER_H_
#define MGC_KERNELS_CUDA_OPTIMIZER_OPTIMIZER_H_

#include <cstdint>

#include "kernels/cuda/step_part.h"

namespace mgc::cuda {

// Steps of `count` tensors, none of which is in another's way (IssueSteps). Below, g = grad · clip.
// Results may be the same arrays as operands.

// One step of AdamW (Loshchilov, Hutter, arXiv:1711.05101). Operands: param, grad, m, v; numbers:
// lr, decay, beta1, beta2, eps, correction1 = 1 - beta1^t, correction2, clip.
//   m' = beta1 m + (1 - beta1) g,  v' = beta2 v + (1 - beta2) g²
//   param' = param - lr ((m' / correction1) / (sqrt(v' / correction2) + eps) + decay · param)
int Adamw(Stream stream, const StepPart* parts, int count);

// One step of Adam (Kingma, Ba, arXiv:1412.6980): the same with g = grad · clip + decay · param,
// and no decay beside the step.
int Adam(Stream stream, const StepPart* parts, int count);

// One step of gradient descent. Operands: param, grad, m; numbers: lr, decay, momentum, clip.
//   m' = momentum · m + g + decay · param,  param' = param - lr m'
int Sgd(Stream stream, const StepPart* parts, int count);

// One step of Lion (Chen et al., arXiv:2302.06675). Operands: param, grad, m; numbers: lr, decay,
// beta1, beta2, clip.
//   param' = param - lr (sign(beta1 m + (1 - beta1) g) + decay · param)
//   m' = beta2 m + (1 - beta2) g
int Lion(Stream stream, const StepPart* parts, int count);

// What Muon makes orthogonal. Operands: grad, m; numbers: momentum, clip; results: direction, m'.
//   m' = momentum · m + (1 - momentum) g,  direction = momentum · m' + (1 - momentum) g
int Nesterov(Stream stream, const StepPart* parts, int count);

// Operands: param, direction; numbers: lr, decay.
//   param' = param - lr (direction + decay · param)
int DecayedStep(Stream stream, const StepPart* parts, int count);

// y = factor · x
int Scale(Stream stream, int64_t n, float factor, const float* x, float* y);

// flag[i] = 1 where x[i] is finite, else 0. T: float or double.
template <class T>
int IsFinite(Stream stream, int64_t n, const T* x, T* flag);

// inverse = 1 / (sqrt(squares) + eps)
int InverseNorm(Stream stream, double eps, const double* squares, double* inverse);

// correction = 1 - beta^(steps + 1)
int BiasCorrection(Stream stream, const double* beta, const double* steps, double* correction);

// The scale of a loss behind a step, and what decides when it changes: the steps since it grew, and
// the overflows left until it falls. Numbers: scale, growth, left, finite, min_scale, window,
// hysteresis; results: scale, growth, left, each of which may be the number of its name.
struct LossScaleNumbers {
  const double* numbers[7];
  double* results[3];
};
int NextLossScale(Stream stream, const LossScaleNumbers& numbers);

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_OPTIMIZER_OPTIMIZER_H_
