// Functions of an index, for all of [0, n): kernels whose arrays are of several types.

#ifndef MGC_KERNELS_CUDA_DEVICE_EACH_H_
#define MGC_KERNELS_CUDA_DEVICE_EACH_H_

#include "kernels/cuda/device/device.h"

namespace mgc::cuda {

template <class Function>
__global__ void EachKernel(Function function, int64_t n) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) function(i);
}

template <class Function>
int Each(Stream stream, int64_t n, Function function) {
  return Launch(EachKernel<Function>, ShapeFor(n), stream, function, n);
}

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_DEVICE_EACH_H_
