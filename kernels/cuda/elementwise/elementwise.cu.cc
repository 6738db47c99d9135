#include "kernels/cuda/elementwise/elementwise.h"

#include <cmath>

#include "kernels/cuda/device/map.h"

namespace mgc::cuda {
namespace {

struct Difference {
  template <class S>
  __device__ S operator()(S a, S b) const {
    return a - b;
  }
};

struct Product {
  template <class S>
  __device__ S operator()(S a, S b) const {
    return a * b;
  }
};

template <class S>
struct Times {
  S factor;
  __device__ S operator()(S x) const { return factor * x; }
};

// Times a number that the device has.
template <class T, class S>
struct TimesStored {
  const T* factor;
  __device__ S operator()(S x) const { return x * static_cast<S>(Load(*factor)); }
};

struct Inverse {
  template <class S>
  __device__ S operator()(S x) const {
    return S{1} / x;
  }
};

struct Root {
  template <class S>
  __device__ S operator()(S x) const {
    return std::sqrt(x);
  }
};

struct ClipFactor {
  __device__ double operator()(double norm, double max) const {
    const double ratio = max / (norm + 1e-6);
    return ratio < 1.0 ? ratio : 1.0;
  }
};

// Operands in units of the launch; bit k of `repeats`: operand k has `period` of them.
template <class T, int kMost>
struct Addends {
  const T* data[kMost];
  FastDivisor period[kMost];
  unsigned repeats = 0;
  int count = 0;
};

// Units of kCount elements; a thread has every `stride`th, and reads all operands before it writes.
template <class T, int kMost, int kCount>
__global__ void AddKernel(Addends<T, kMost> x, int64_t units, T* y) {
  using Elements = Vector<T, kCount>;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t u = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; u < units; u += stride) {
    const Elements first = reinterpret_cast<const Elements*>(x.data[0])[u];
    Wide<T> sum[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) sum[i] = Load(first.at[i]);
#pragma unroll
    for (int k = 1; k < kMost; ++k) {
      if (k >= x.count) break;
      const int64_t at = x.repeats >> k & 1 ? x.period[k].Remainder(u) : u;
      const Elements operand = reinterpret_cast<const Elements*>(x.data[k])[at];
#pragma unroll
      for (int i = 0; i < kCount; ++i) sum[i] += Load(operand.at[i]);
    }
    Elements out;
#pragma unroll
    for (int i = 0; i < kCount; ++i) out.at[i] = Store<T>(sum[i]);
    reinterpret_cast<Elements*>(y)[u] = out;
  }
}

template <class T, int kMost, int kCount>
int AddUnits(Stream stream, int64_t n, int count, const T* const* x, const int64_t* sizes, T* y) {
  Addends<T, kMost> addends;
  addends.count = count;
  for (int k = 0; k < count; ++k) {
    addends.data[k] = x[k];
    if (sizes[k] == n) continue;
    addends.repeats |= 1u << k;
    addends.period[k] = FastDivisor(sizes[k] / kCount);
  }
  return Launch(AddKernel<T, kMost, kCount>, ShapeFor(n / kCount), stream, addends, n / kCount, y);
}

template <class T, int kMost>
int AddOf(Stream stream, int64_t n, int count, const T* const* x, const int64_t* sizes, T* y) {
  constexpr int kCount = kPerVector<T>;
  bool vectors = IsAligned(y, 16);
  for (int k = 0; k < count; ++k) {
    vectors = vectors && IsAligned(x[k], 16) && sizes[k] % kCount == 0;
  }
  return vectors ? AddUnits<T, kMost, kCount>(stream, n, count, x, sizes, y)
                 : AddUnits<T, kMost, 1>(stream, n, count, x, sizes, y);
}

}  // namespace

template <class T>
int Add(Stream stream, int64_t n, int count, const T* const* x, const int64_t* sizes, T* y) {
  if (count <= 2) return AddOf<T, 2>(stream, n, count, x, sizes, y);
  if (count <= 4) return AddOf<T, 4>(stream, n, count, x, sizes, y);
  return AddOf<T, kMostAddends>(stream, n, count, x, sizes, y);
}

template <class T>
int Subtract(Stream stream, int64_t n, const T* a, const T* b, T* y) {
  return Map(stream, n, Difference(), y, a, b);
}

template <class T>
int Multiply(Stream stream, int64_t n, const T* a, int64_t b_size, const T* b, T* y) {
  if (b_size == 1) return Map(stream, n, TimesStored<T, Wide<T>>{b}, y, a);
  return MapRepeating(stream, n, Product(), y, b_size, b, a);
}

template <class T>
int Scale(Stream stream, int64_t n, double factor, const T* x, T* y) {
  return Map(stream, n, Times<Wide<T>>{static_cast<Wide<T>>(factor)}, y, x);
}

template <class T>
int ScaleBy(Stream stream, int64_t n, const double* factor, const T* x, T* y) {
  return Map(stream, n, TimesStored<double, Wide<T>>{factor}, y, x);
}

template <class T>
int Invert(Stream stream, int64_t n, const T* x, T* y) {
  return Map(stream, n, Inverse(), y, x);
}

template <class T>
int SquareRoot(Stream stream, int64_t n, const T* x, T* y) {
  return Map(stream, n, Root(), y, x);
}

int ClipScale(Stream stream, int64_t n, const double* norm, const double* max, double* factor) {
  return Map(stream, n, ClipFactor(), factor, norm, max);
}

#define MGC_INSTANTIATE(T)                                                        \
  template int Add<T>(Stream, int64_t, int, const T* const*, const int64_t*, T*); \
  template int Subtract<T>(Stream, int64_t, const T*, const T*, T*);              \
  template int Multiply<T>(Stream, int64_t, const T*, int64_t, const T*, T*);     \
  template int Scale<T>(Stream, int64_t, double, const T*, T*);                   \
  template int ScaleBy<T>(Stream, int64_t, const double*, const T*, T*)
MGC_INSTANTIATE(float);
MGC_INSTANTIATE(Bfloat16);
MGC_INSTANTIATE(Float16);
MGC_INSTANTIATE(double);
#undef MGC_INSTANTIATE

template int Invert(Stream, int64_t, const float*, float*);
template int Invert(Stream, int64_t, const double*, double*);
template int SquareRoot(Stream, int64_t, const float*, float*);
template int SquareRoot(Stream, int64_t, const double*, double*);

}  // namespace mgc::cuda
