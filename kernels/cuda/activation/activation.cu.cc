#include "kernels/cuda/activation/activation.h"

#include "kernels/cuda/device/map.h"

namespace mgc::cuda {
namespace {

constexpr float kLinear = 1.5957691216057308f;   // 2 sqrt(2/pi)
constexpr float kCubic = 0.071354816272600248f;  // 2 sqrt(2/pi) · 0.044715

struct GeluOf {
  // gelu(x) = x / (1 + exp(-2u)) with u = sqrt(2/pi) (x + 0.044715 x^3)
  __device__ float operator()(float x) const {
    return x / (1.0f + expf(-x * fmaf(x * x, kCubic, kLinear)));
  }
};

struct GeluGradOf {
  // With e = exp(-2u), the gate is 1 / (1 + e) and its complement e · gate, without cancellation.
  __device__ float operator()(float dy, float x) const {
    const float square = x * x;
    const float e = expf(fminf(-x * fmaf(square, kCubic, kLinear), 87.0f));
    const float gate = 1.0f / (1.0f + e);
    const float bend = gate * gate * e;
    const float slope = fmaf(square, 3 * kCubic, kLinear);  // of 2u
    // Far out bend is 0 exactly, and must not meet an infinite slope.
    return dy * (gate + (bend == 0.0f ? bend : bend * x * slope));
  }
};

}  // namespace

template <class T>
int Gelu(Stream stream, int64_t n, const T* x, T* y) {
  return Map(stream, n, GeluOf(), y, x);
}
template <class T>
int GeluGrad(Stream stream, int64_t n, const T* dy, const T* x, T* dx) {
  return Map(stream, n, GeluGradOf(), dx, dy, x);
}

#define MGC_INSTANTIATE(T)                             \
  template int Gelu<T>(Stream, int64_t, const T*, T*); \
  template int GeluGrad<T>(Stream, int64_t, const T*, const T*, T*)
MGC_INSTANTIATE(float);
MGC_INSTANTIATE(Bfloat16);
MGC_INSTANTIATE(Float16);
#undef MGC_INSTANTIATE

}  // namespace mgc::cuda
