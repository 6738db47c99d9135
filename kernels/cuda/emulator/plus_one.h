// What tests of the emulated runtime let it do: a kernel that adds one to each of a few numbers.

#ifndef MGC_KERNELS_CUDA_EMULATOR_PLUS_ONE_H_
#define MGC_KERNELS_CUDA_EMULATOR_PLUS_ONE_H_

#include <cstddef>
#include <vector>

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/emulator/runtime.h"
#include "kernels/cuda/emulator/seeded_fault.h"

namespace mgc::cuda::emulator {

inline constexpr int kCount = 256;
inline constexpr size_t kBytes = kCount * sizeof(float);

inline __global__ void PlusOneKernel(const float* x, float* y) {
  y[threadIdx.x] = x[threadIdx.x] + 1;
}

inline void PlusOne(cudaStream_t stream, const float* x, float* y) {
  Launch(PlusOneKernel, LaunchShape{1, 1, 1, kCount, 0}, stream, x, y);
}

// first, first + 1, first + 2...
inline std::vector<float> CountedFrom(int first) {
  std::vector<float> values = Counted(kCount);
  for (float& value : values) value += static_cast<float>(first);
  return values;
}

}  // namespace mgc::cuda::emulator

#endif  // MGC_KERNELS_CUDA_EMULATOR_PLUS_ONE_H_
