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
  float decay;
  float decay_rate;  // lr · decay
};

struct SgdFactors {
  float lr, decay, momentum, grad_scale;
};

struct LionFactors {
  float lr, decay_rate;
  float beta1, one_minus_beta1, beta2, one_minus_beta2, grad_scale;
};

struct NesterovFactors {
  float momentum, one_minus_momentum, grad_scale;
};

}  // namespace mgc::cpu

#define MGC_SIMD_BODY "kernels/cpu/optimizer/optimizer.inc"
#include "kernels/cpu/simd/simd_each.inc"

namespace mgc::cpu {

namespace {

constexpr int64_t kRun = 8192;  // elements that a thread takes at a time

AdamwFactors FactorsOf(const AdamwScalars& s) {
  AdamwFactors f;
  f.beta1 = static_cast<float>(s.beta1);
  f.one_minus_beta1 = static_cast<float>(1 - s.beta1);
  f.beta2 = static_cast<float>(s.beta2);
  f.one_minus_beta2 = static_cast<float>(1 - s.beta2);
  f.eps = static_cast<float>(s.eps);
  f.grad_scale = static_cast<float>(s.grad_scale);
  f.rate = static_cast<float>(s.lr / s.correction1);
  f.root_scale = static_cast<float>(1 / std::sqrt(s.correction2));
  f.decay = static_cast<float>(s.decay);
  f.decay_rate = static_cast<float>(s.lr * s.decay);
  return f;
}

}  // namespace

void Adamw(Parallel& parallel, int64_t n, const AdamwScalars& s, const float* param,
           const float* grad, const float* m, const float* v, float* new_param, float* new_m,
           float* new_v) {
  const AdamwFactors f = FactorsOf(s);
  parallel.For(n, kRun, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, AdamwRange, begin, end, f, param, grad, m, v, new_param, new_m, new_v);
  });
}

void Adam(Parallel& parallel, int64_t n, const AdamwScalars& s, const float* param,
          const float* grad, const float* m, const float* v, float* new_param, float* new_m,
          float* new_v) {
  const AdamwFactors f = FactorsOf(s);
  parallel.For(n, kRun, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, AdamRange, begin, end, f, param, grad, m, v, new_param, new_m, new_v);
  });
}

void Sgd(Parallel& parallel, int64_t n, const SgdScalars& s, const float* param, const float* grad,
         const float* m, float* new_param, float* new_m) {
  const SgdFactors f = {static_cast<float>(s.lr), static_cast<float>(s.decay),
                        static_cast<float>(s.momentum), static_cast<float>(s.grad_scale)};
  parallel.For(n, kRun, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, SgdRange, begin, end, f, param, grad, m, new_param, new_m);
  });
}

void Lion(Parallel& parallel, int64_t n, const LionScalars& s, const float* param,
          const float* grad, const float* m, float* new_param, float* new_m) {
  LionFactors f;
  f.lr = static_cast<float>(s.lr);
  f.decay_rate = static_cast<float>(s.lr * s.decay);
  f.beta1 = static_cast<float>(s.beta1);
  f.one_minus_beta1 = static_cast<float>(1 - s.beta1);
  f.beta2 = static_cast<float>(s.beta2);
  f.one_minus_beta2 = static_cast<float>(1 - s.beta2);
  f.grad_scale = static_cast<float>(s.grad_scale);
  parallel.For(n, kRun, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, LionRange, begin, end, f, param, grad, m, new_param, new_m);
  });
}

void Nesterov(Parallel& parallel, int64_t n, double momentum, double grad_scale, const float* grad,
              const float* m, float* direction, float* new_m) {
  const NesterovFactors f = {static_cast<float>(momentum), static_cast<float>(1 - momentum),
                             static_cast<float>(grad_scale)};
  parallel.For(n, kRun, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, NesterovRange, begin, end, f, grad, m, direction, new_m);
  });
}

void DecayedStep(Parallel& parallel, int64_t n, double lr, double decay, const float* param,
                 const float* direction, float* new_param) {
  const auto rate = static_cast<float>(lr);
  const auto decay_rate = static_cast<float>(lr * decay);
  parallel.For(n, kRun, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, DecayedStepRange, begin, end, rate, decay_rate, param, direction,
                  new_param);
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
