#include "kernels/cpu/optimizer/optimizer.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/simd/simd.h"

namespace mgc::cpu {

// AdamwScalars as the loop uses them.
struct AdamwFactors {
  float beta1, one_minus_beta1, beta2, one_minus_beta2, eps;
  float grad_scale;
  float rate;        // lr / correction1
  float root_scale;  // 1 / sqrt(correction2)
  float decay_rate;  // lr · decay
};

}  // namespace mgc::cpu

#define MGC_SIMD_BODY "kernels/cpu/optimizer/optimizer.inc"
#include "kernels/cpu/simd/simd_each.inc"

namespace mgc::cpu {

void Adamw(Parallel& parallel, int64_t n, const AdamwScalars& s, const float* param,
           const float* grad, const float* m, const float* v, float* new_param, float* new_m,
           float* new_v) {
  AdamwFactors f;
  f.beta1 = static_cast<float>(s.beta1);
  f.one_minus_beta1 = static_cast<float>(1 - s.beta1);
  f.beta2 = static_cast<float>(s.beta2);
  f.one_minus_beta2 = static_cast<float>(1 - s.beta2);
  f.eps = static_cast<float>(s.eps);
  f.grad_scale = static_cast<float>(s.grad_scale);
  f.rate = static_cast<float>(s.lr / s.correction1);
  f.root_scale = static_cast<float>(1 / std::sqrt(s.correction2));
  f.decay_rate = static_cast<float>(s.lr * s.decay);
  parallel.For(n, 8192, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, AdamwRange, begin, end, f, param, grad, m, v, new_param, new_m, new_v);
  });
}

LossScale NextLossScale(LossScale state, bool finite, const LossScaleRule& rule) {
  if (!finite) {
    state.growth = 0;
    state.left -= 1;
    if (state.left <= 0) state.scale = std::max(state.scale / 2, rule.min_scale);
    return state;
  }
  state.growth += 1;
  if (state.growth != rule.window) return state;
  return {state.scale * 2, 0, rule.hysteresis};
}

}  // namespace mgc::cpu
