// The parameter update.
#ifndef MGC_KERNELS_CPU_OPTIMIZER_OPTIMIZER_H_
#define MGC_KERNELS_CPU_OPTIMIZER_OPTIMIZER_H_

#include <cstdint>

#include "kernels/parallel.h"

namespace mgc::cpu {

struct AdamwScalars {
  double lr = 0;
  double decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double correction1 = 1;  // 1 - beta1^t
  double correction2 = 1;  // 1 - beta2^t
  // Multiplies the gradient first: clipping, the division by the token count.
  double grad_scale = 1;
};

// One step of AdamW (Loshchilov, Hutter, arXiv:1711.05101) on n elements. g = grad · grad_scale,
//   m' = beta1 m + (1 - beta1) g,  v' = beta2 v + (1 - beta2) g²
//   param' = param - lr ((m' / correction1) / (sqrt(v' / correction2) + eps) + decay · param)
// Results may be the same arrays as operands.
void Adamw(Parallel& parallel, int64_t n, const AdamwScalars& scalars, const float* param,
           const float* grad, const float* m, const float* v, float* new_param, float* new_m,
           float* new_v);

// One step of Adam (Kingma, Ba, arXiv:1412.6980): the same with g = grad · grad_scale + decay ·
// param, and no decay beside the step.
void Adam(Parallel& parallel, int64_t n, const AdamwScalars& scalars, const float* param,
          const float* grad, const float* m, const float* v, float* new_param, float* new_m,
          float* new_v);

struct SgdScalars {
  double lr = 0;
  double decay = 0;
  double momentum = 0;
  double grad_scale = 1;
};

// One step of gradient descent: g = grad · grad_scale + decay · param,
//   m' = momentum · m + g,  param' = param - lr m'
// Results may be the same arrays as operands, here and below.
void Sgd(Parallel& parallel, int64_t n, const SgdScalars& scalars, const float* param,
         const float* grad, const float* m, float* new_param, float* new_m);

struct LionScalars {
  double lr = 0;
  double decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double grad_scale = 1;
};

// One step of Lion (Chen et al., arXiv:2302.06675): g = grad · grad_scale,
//   param' = param - lr (sign(beta1 m + (1 - beta1) g) + decay · param)
//   m' = beta2 m + (1 - beta2) g
void Lion(Parallel& parallel, int64_t n, const LionScalars& scalars, const float* param,
          const float* grad, const float* m, float* new_param, float* new_m);

// What Muon makes orthogonal: g = grad · grad_scale,
//   m' = momentum · m + (1 - momentum) g,  direction = momentum · m' + (1 - momentum) g
void Nesterov(Parallel& parallel, int64_t n, double momentum, double grad_scale, const float* grad,
              const float* m, float* direction, float* new_m);

//   param' = param - lr (direction + decay · param)
void DecayedStep(Parallel& parallel, int64_t n, double lr, double decay, const float* param,
                 const float* direction, float* new_param);

// The scale of a loss, and what decides when it changes.
struct LossScale {
  double scale = 1;
  double growth = 0;  // finite steps since the last change
  double left = 0;    // overflows until the scale falls; below 1 each makes it fall
};

struct LossScaleRule {
  double min_scale = 1;
  double window = 0;      // finite steps after which the scale grows
  double hysteresis = 1;  // what `left` begins with, and returns to when the scale grows
};

// Behind a step whose gradient was finite, or not.
LossScale NextLossScale(LossScale state, bool finite, const LossScaleRule& rule);

}  // namespace mgc::cpu

#endif  // MGC_KERNELS_CPU_OPTIMIZER_OPTIMIZER_H_
