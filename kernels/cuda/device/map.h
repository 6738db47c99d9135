// Functions of one element after the other, over arrays: the shape of most small kernels.

#ifndef MGC_KERNELS_CUDA_DEVICE_MAP_H_
#define MGC_KERNELS_CUDA_DEVICE_MAP_H_

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/elements.h"

namespace mgc::cuda {

// Elements of 16 bytes.
template <class T>
inline constexpr int kPerVector = 16 / static_cast<int>(sizeof(T));

// y[i] = function(x[i]...) in f32, rounded. Whole vectors of 16 bytes, then single elements: which
// of them an element is in does not change what is computed for it.
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

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_DEVICE_MAP_H_
