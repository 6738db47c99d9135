#include "kernels/cuda/activation/activation.h"

#include "kernels/cuda/activation/functions.h"
#include "kernels/cuda/device/map.h"

namespace mgc::cuda {
namespace {

template <class F>
struct Value {
  __device__ float operator()(float x) const { return F::Of(x); }
};

template <class F>
struct Gradient {
  __device__ float operator()(float dy, float x) const { return dy * F::Slope(x); }
};

template <class F>
struct Gate {
  __device__ float operator()(float gate, float up) const { return F::Of(gate) * up; }
};

template <class T, class F>
struct GateGradient {
  __device__ Two<T> operator()(float dy, float gate, float up) const {
    return {dy * up * F::Slope(gate), dy * F::Of(gate)};
  }
};

// The sum as it would be stored between two ops.
template <class T>
__device__ float RoundedSum(float a, float b) {
  return Load(Store<T>(a + b));
}

template <class T>
struct BiasedGelu {
  __device__ float operator()(float x, float bias) const {
    return GeluFunction::Of(RoundedSum<T>(x, bias));
  }
};

template <class T>
struct BiasedGeluGradient {
  __device__ float operator()(float dy, float x, float bias) const {
    return dy * GeluFunction::Slope(RoundedSum<T>(x, bias));
  }
};

struct Capped {
  float cap, inverse;
  __device__ float operator()(float x) const { return cap * tanhf(x * inverse); }
};

struct CappedGradient {
  float inverse;
  __device__ float operator()(float dy, float x) const { return dy * TanhSlope(x * inverse); }
};

}  // namespace

template <class T>
int Gelu(Stream stream, int64_t n, const T* x, T* y) {
  return Map(stream, n, Value<GeluFunction>(), y, x);
}
template <class T>
int GeluGrad(Stream stream, int64_t n, const T* dy, const T* x, T* dx) {
  return Map(stream, n, Gradient<GeluFunction>(), dx, dy, x);
}
template <class T>
int BiasGelu(Stream stream, int64_t n, int64_t cols, const T* x, const T* bias, T* y) {
  return MapRepeating(stream, n, BiasedGelu<T>(), y, cols, bias, x);
}
template <class T>
int BiasGeluGrad(Stream stream, int64_t n, int64_t cols, const T* dy, const T* x, const T* bias,
                 T* dx) {
  return MapRepeating(stream, n, BiasedGeluGradient<T>(), dx, cols, bias, dy, x);
}

template <class T>
int GeluErf(Stream stream, int64_t n, const T* x, T* y) {
  return Map(stream, n, Value<GeluErfFunction>(), y, x);
}
template <class T>
int GeluErfGrad(Stream stream, int64_t n, const T* dy, const T* x, T* dx) {
  return Map(stream, n, Gradient<GeluErfFunction>(), dx, dy, x);
}
template <class T>
int Geglu(Stream stream, int64_t n, const T* gate, const T* up, T* y) {
  return Map(stream, n, Gate<GeluFunction>(), y, gate, up);
}
template <class T>
int GegluGrad(Stream stream, int64_t n, const T* dy, const T* gate, const T* up, T* dgate, T* dup) {
  return MapToTwo(stream, n, GateGradient<T, GeluFunction>(), dgate, dup, dy, gate, up);
}

template <class T>
int SoftCap(Stream stream, int64_t n, float cap, const T* x, T* y) {
  return Map(stream, n, Capped{cap, 1.0f / cap}, y, x);
}
template <class T>
int SoftCapGrad(Stream stream, int64_t n, float cap, const T* dy, const T* x, T* dx) {
  return Map(stream, n, CappedGradient{1.0f / cap}, dx, dy, x);
}

template <class T>
int Softplus(Stream stream, int64_t n, const T* x, T* y) {
  return Map(stream, n, Value<SoftplusFunction>(), y, x);
}
template <class T>
int SoftplusGrad(Stream stream, int64_t n, const T* dy, const T* x, T* dx) {
  return Map(stream, n, Gradient<SoftplusFunction>(), dx, dy, x);
}

template <class T>
int Silu(Stream stream, int64_t n, const T* x, T* y) {
  return Map(stream, n, Value<SiluFunction>(), y, x);
}
template <class T>
int SiluGrad(Stream stream, int64_t n, const T* dy, const T* x, T* dx) {
  return Map(stream, n, Gradient<SiluFunction>(), dx, dy, x);
}
template <class T>
int Swiglu(Stream stream, int64_t n, const T* gate, const T* up, T* y) {
  return Map(stream, n, Gate<SiluFunction>(), y, gate, up);
}
template <class T>
int SwigluGrad(Stream stream, int64_t n, const T* dy, const T* gate, const T* up, T* dgate,
               T* dup) {
  return MapToTwo(stream, n, GateGradient<T, SiluFunction>(), dgate, dup, dy, gate, up);
}

#define MGC_INSTANTIATE(T)                                                                  \
  template int Gelu<T>(Stream, int64_t, const T*, T*);                                      \
  template int GeluGrad<T>(Stream, int64_t, const T*, const T*, T*);                        \
  template int BiasGelu<T>(Stream, int64_t, int64_t, const T*, const T*, T*);               \
  template int BiasGeluGrad<T>(Stream, int64_t, int64_t, const T*, const T*, const T*, T*); \
  template int GeluErf<T>(Stream, int64_t, const T*, T*);                                   \
  template int GeluErfGrad<T>(Stream, int64_t, const T*, const T*, T*);                     \
  template int Geglu<T>(Stream, int64_t, const T*, const T*, T*);                           \
  template int GegluGrad<T>(Stream, int64_t, const T*, const T*, const T*, T*, T*);         \
  template int SoftCap<T>(Stream, int64_t, float, const T*, T*);                            \
  template int SoftCapGrad<T>(Stream, int64_t, float, const T*, const T*, T*);              \
  template int Softplus<T>(Stream, int64_t, const T*, T*);                                  \
  template int SoftplusGrad<T>(Stream, int64_t, const T*, const T*, T*);                    \
  template int Silu<T>(Stream, int64_t, const T*, T*);                                      \
  template int SiluGrad<T>(Stream, int64_t, const T*, const T*, T*);                        \
  template int Swiglu<T>(Stream, int64_t, const T*, const T*, T*);                          \
  template int SwigluGrad<T>(Stream, int64_t, const T*, const T*, const T*, T*, T*)
MGC_INSTANTIATE(float);
MGC_INSTANTIATE(Bfloat16);
MGC_INSTANTIATE(Float16);
#undef MGC_INSTANTIATE

}  // namespace mgc::cuda
