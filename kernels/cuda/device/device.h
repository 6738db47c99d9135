// What device code is written with: CUDA's own words, or those of the emulator.
//
// A file `<name>.cu.cc` is compiled twice: by nvcc for GPUs, and by the host's compiler with
// MGC_CUDA_EMULATED for the emulator (kernels/cuda/emulator/emulator.h), which runs a block's
// threads one after the other on the CPU. So every kernel is executed against its op's cases on
// any machine. What keeps both compilers content:
//
//   * A kernel is a `__global__ void` function (template) of plain values and pointers, launched by
//     Launch below and by nothing else.
//   * Shared memory is `__shared__ T name[N]` of a kernel, or SharedBytes() where its size is of
//     the launch. It is never assumed to be zero.
//   * Inline PTX stands only in one-instruction functions of kernels/cuda/device/, beside their
//     emulated meaning.
//   * All threads of a block reach a __syncthreads(), all of a warp a shuffle: a thread outside of
//     its data takes part and contributes nothing. No early return before them.
//   * Files of device code include no Abseil: nvcc compiles few things well.

#ifndef MGC_KERNELS_CUDA_DEVICE_DEVICE_H_
#define MGC_KERNELS_CUDA_DEVICE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include "kernels/cuda/launch_shape.h"

#ifdef MGC_CUDA_EMULATED
#include "kernels/cuda/emulator/emulator.h"
#else
#include <cuda_runtime.h>
#endif

namespace mgc::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kWholeWarp = 0xffffffffu;

// The block's shared memory whose size is of the launch, aligned to 1024 bytes.
#ifdef MGC_CUDA_EMULATED
inline char* SharedBytes() { return emulator::DynamicShared(); }
#else
__device__ inline char* SharedBytes() {
  extern __shared__ __align__(1024) char dynamic_shared[];
  return dynamic_shared;
}
#endif

// Issues a kernel to a stream. The error of the launch itself; what goes wrong later is the
// stream's. A shape without blocks or threads launches nothing.
template <class... Formals, class... Actuals>
int Launch(void (*kernel)(Formals...), const LaunchShape& shape, Stream stream,
           Actuals... actuals) {
  if (shape.blocks() == 0) return 0;
#ifdef MGC_CUDA_EMULATED
  return emulator::LaunchKernel(kernel, shape, stream, std::tuple<Formals...>(actuals...));
#else
  if (shape.shared_bytes > kSharedWithoutAsking) {
    const cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shape.shared_bytes));
    if (error != cudaSuccess) return static_cast<int>(error);
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(shape.grid_x, shape.grid_y, shape.grid_z);
  config.blockDim = dim3(shape.block);
  config.dynamicSmemBytes = static_cast<size_t>(shape.shared_bytes);
  config.stream = static_cast<cudaStream_t>(stream);
  return static_cast<int>(cudaLaunchKernelEx(&config, kernel, static_cast<Formals>(actuals)...));
#endif
}

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_DEVICE_DEVICE_H_
