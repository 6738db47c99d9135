#include "kernels/cuda/identity/identity.h"

#include "kernels/cuda/device/map.h"

namespace mgc::cuda {
namespace {

__global__ void FillScalarKernel(double value, double* y) { *y = value; }

struct Sum {
  template <class S>
  __device__ S operator()(S a, S b) const {
    return a + b;
  }
};

template <class To, class From>
__device__ To Converted(From x) {
  if constexpr (std::is_same_v<From, double> || std::is_same_v<To, double>) {
    return static_cast<To>(x);
  } else {
    return Store<To>(Load(x));
  }
}

// Units of kCount elements; a thread has every `stride`th.
template <class From, class To, int kCount>
__global__ void CastKernel(int64_t units, const From* x, To* y) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t u = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; u < units; u += stride) {
    const auto in = reinterpret_cast<const Vector<From, kCount>*>(x)[u];
    Vector<To, kCount> out;
#pragma unroll
    for (int k = 0; k < kCount; ++k) out.at[k] = Converted<To>(in.at[k]);
    reinterpret_cast<Vector<To, kCount>*>(y)[u] = out;
  }
}

}  // namespace

int FillScalar(Stream stream, double value, double* y) {
  return Launch(FillScalarKernel, ShapeFor(1, 1), stream, value, y);
}

template <class T>
int Accumulate(Stream stream, int64_t n, const T* a, const T* b, T* y) {
  return Map(stream, n, Sum(), y, a, b);
}

template <class From, class To>
int Cast(Stream stream, int64_t n, const From* x, To* y) {
  constexpr int kCount = 16 / (sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To));
  const bool aligned = IsAligned(x, kCount * sizeof(From)) && IsAligned(y, kCount * sizeof(To));
  if (aligned && n % kCount == 0) {
    return Launch(CastKernel<From, To, kCount>, ShapeFor(n / kCount), stream, n / kCount, x, y);
  }
  return Launch(CastKernel<From, To, 1>, ShapeFor(n), stream, n, x, y);
}

template int Accumulate(Stream, int64_t, const float*, const float*, float*);
template int Accumulate(Stream, int64_t, const double*, const double*, double*);
template int Cast(Stream, int64_t, const float*, Bfloat16*);
template int Cast(Stream, int64_t, const float*, Float16*);
template int Cast(Stream, int64_t, const float*, double*);
template int Cast(Stream, int64_t, const Bfloat16*, float*);
template int Cast(Stream, int64_t, const Float16*, float*);
template int Cast(Stream, int64_t, const double*, float*);

}  // namespace mgc::cuda
