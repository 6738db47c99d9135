// Functions of one element after the other, over arrays: the shape of most small kernels.

#ifndef MGC_KERNELS_CUDA_DEVICE_MAP_H_
#define MGC_KERNELS_CUDA_DEVICE_MAP_H_

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/elements.h"
#include "kernels/cuda/device/fast_divisor.h"

namespace mgc::cuda {

// Elements of 16 bytes.
template <class T>
inline constexpr int kPerVector = 16 / static_cast<int>(sizeof(T));

// y[i] = function(x[i]...) in Wide numbers, rounded. Whole vectors of 16 bytes, then single
// elements: which of them an element is in does not change what is computed for it.
template <class T, class Function, class... Inputs>
__global__ void MapKernel(Function function, int64_t n, int64_t vectors, T* y, const Inputs*... x) {
  constexpr int kCount = kPerVector<T>;
  using Elements = Vector<T, kCount>;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  const int64_t first = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (int64_t v = first; v < vectors; v += stride) {
    const auto one = [&](auto... in) {
      Elements out;
#pragma unroll
      for (int k = 0; k < kCount; ++k) out.at[k] = Store<T>(function(Load(in.at[k])...));
      reinterpret_cast<Elements*>(y)[v] = out;
    };
    one(reinterpret_cast<const Elements*>(x)[v]...);
  }
  for (int64_t i = vectors * kCount + first; i < n; i += stride) {
    y[i] = Store<T>(function(Load(x[i])...));
  }
}

// `y` may be any of `x`. Arrays that are not aligned to 16 bytes go element by element.
template <class T, class Function, class... Inputs>
int Map(Stream stream, int64_t n, Function function, T* y, const Inputs*... x) {
  static_assert((std::is_same_v<T, Inputs> && ...));
  const bool aligned = (IsAligned(x, 16) && ...) && IsAligned(y, 16);
  const int64_t vectors = aligned ? n / kPerVector<T> : 0;
  const int64_t threads = aligned ? vectors + (n % kPerVector<T> != 0 ? 1 : 0) : n;
  return Launch(MapKernel<T, Function, Inputs...>, ShapeFor(threads), stream, function, n, vectors,
                y, x...);
}

// What a function of two results gives.
template <class T>
struct Two {
  Wide<T> first, second;
};

// (y0[i], y1[i]) = function(x[i]...), as MapKernel has it.
template <class T, class Function, class... Inputs>
__global__ void MapToTwoKernel(Function function, int64_t n, int64_t vectors, T* y0, T* y1,
                               const Inputs*... x) {
  constexpr int kCount = kPerVector<T>;
  using Elements = Vector<T, kCount>;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  const int64_t first = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (int64_t v = first; v < vectors; v += stride) {
    const auto one = [&](auto... in) {
      Elements out0, out1;
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        const Two<T> two = function(Load(in.at[k])...);
        out0.at[k] = Store<T>(two.first);
        out1.at[k] = Store<T>(two.second);
      }
      reinterpret_cast<Elements*>(y0)[v] = out0;
      reinterpret_cast<Elements*>(y1)[v] = out1;
    };
    one(reinterpret_cast<const Elements*>(x)[v]...);
  }
  for (int64_t i = vectors * kCount + first; i < n; i += stride) {
    const Two<T> two = function(Load(x[i])...);
    y0[i] = Store<T>(two.first);
    y1[i] = Store<T>(two.second);
  }
}

// `y0` and `y1` may be any of `x`, but not each other.
template <class T, class Function, class... Inputs>
int MapToTwo(Stream stream, int64_t n, Function function, T* y0, T* y1, const Inputs*... x) {
  static_assert((std::is_same_v<T, Inputs> && ...));
  const bool aligned = (IsAligned(x, 16) && ...) && IsAligned(y0, 16) && IsAligned(y1, 16);
  const int64_t vectors = aligned ? n / kPerVector<T> : 0;
  const int64_t threads = aligned ? vectors + (n % kPerVector<T> != 0 ? 1 : 0) : n;
  return Launch(MapToTwoKernel<T, Function, Inputs...>, ShapeFor(threads), stream, function, n,
                vectors, y0, y1, x...);
}

// y[i] = function(x[i]..., b[i % period]) for all i in units of kCount elements.
template <class T, int kCount, class Function, class... Inputs>
__global__ void MapRepeatingKernel(Function function, int64_t units, FastDivisor period, T* y,
                                   const T* b, const Inputs*... x) {
  using Elements = Vector<T, kCount>;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t u = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; u < units; u += stride) {
    const Elements repeated = reinterpret_cast<const Elements*>(b)[period.Remainder(u)];
    const auto one = [&](auto... in) {
      Elements out;
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        out.at[k] = Store<T>(function(Load(in.at[k])..., Load(repeated.at[k])));
      }
      reinterpret_cast<Elements*>(y)[u] = out;
    };
    one(reinterpret_cast<const Elements*>(x)[u]...);
  }
}

// The last operand has `period` elements, which divides n, and begins again after them, as a bias
// does over rows. `y` may be any of `x`; of n elements it may be `b` too.
template <class T, class Function, class... Inputs>
int MapRepeating(Stream stream, int64_t n, Function function, T* y, int64_t period, const T* b,
                 const Inputs*... x) {
  static_assert((std::is_same_v<T, Inputs> && ...));
  if (period == n) return Map(stream, n, function, y, x..., b);
  constexpr int kCount = kPerVector<T>;
  const bool aligned = (IsAligned(x, 16) && ...) && IsAligned(y, 16) && IsAligned(b, 16);
  if (aligned && period % kCount == 0) {
    return Launch(MapRepeatingKernel<T, kCount, Function, Inputs...>, ShapeFor(n / kCount), stream,
                  function, n / kCount, FastDivisor(period / kCount), y, b, x...);
  }
  return Launch(MapRepeatingKernel<T, 1, Function, Inputs...>, ShapeFor(n), stream, function, n,
                FastDivisor(period), y, b, x...);
}

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_DEVICE_MAP_H_
