// Activations and their slopes of one number, in device code.

#ifndef MGC_KERNELS_CUDA_ACTIVATION_FUNCTIONS_H_
#define MGC_KERNELS_CUDA_ACTIVATION_FUNCTIONS_H_

#include <cmath>

#include "kernels/cuda/device/device.h"

namespace mgc::cuda {

// NaN where x is.
__device__ inline float Sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// gelu(x) = x · sigmoid(2u) with u = sqrt(2/pi) (x + 0.044715 x^3)
struct GeluFunction {
  static constexpr float kLinear = 1.5957691216057308f;   // 2 sqrt(2/pi)
  static constexpr float kCubic = 0.071354816272600248f;  // 2 sqrt(2/pi) · 0.044715

  __device__ static float Of(float x) {
    return x / (1.0f + expf(-x * fmaf(x * x, kCubic, kLinear)));
  }

  // With e = exp(-2u), the gate is 1 / (1 + e) and its complement e · gate, without cancellation.
  __device__ static float Slope(float x) {
    const float square = x * x;
    const float e = expf(fminf(-x * fmaf(square, kCubic, kLinear), 87.0f));
    const float gate = 1.0f / (1.0f + e);
    const float bend = gate * gate * e;
    const float slope = fmaf(square, 3 * kCubic, kLinear);  // of 2u
    // Far out bend is 0 exactly, and must not meet an infinite slope; fminf hides a NaN.
    const float total = gate + (bend == 0.0f ? bend : bend * x * slope);
    return x != x ? x : total;
  }
};

struct GeluErfFunction {
  static constexpr float kFar = 15.0f;  // where the result is x or 0, the slope 1 or 0

  __device__ static float Share(float x) { return 0.5f * erfcf(-x * 0.70710678f); }

  __device__ static float Of(float x) { return x < -kFar ? 0.0f : x * Share(x); }

  __device__ static float Slope(float x) {
    constexpr float kPeak = 0.3989422804f;  // 1 / sqrt(2 pi)
    if (x > kFar) return 1.0f;
    if (x < -kFar) return 0.0f;
    return fmaf(x * expf(-0.5f * x * x), kPeak, Share(x));
  }
};

struct SiluFunction {
  __device__ static float Of(float x) { return x * Sigmoid(x); }

  __device__ static float Slope(float x) {
    if (x < -88.0f) return 0.0f;
    const float e = expf(-x);
    const float s = 1.0f / (1.0f + e);
    return s * fmaf(x, e * s, 1.0f);
  }
};

struct SoftplusFunction {
  // What is small beside 1 is kept.
  __device__ static float Of(float x) {
    const float bend = log1pf(expf(x < 0.0f ? x : -x));
    return (x < 0.0f ? 0.0f : x) + bend;
  }
  __device__ static float Slope(float x) { return Sigmoid(x); }
};

// 1 - tanh(x)^2: the square of what is left of 1 would cancel.
__device__ inline float TanhSlope(float x) {
  const float e = expf(-2.0f * fabsf(x));
  const float sum = 1.0f + e;
  return 4.0f * e / (sum * sum);
}

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_ACTIVATION_FUNCTIONS_H_
