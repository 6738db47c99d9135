// The part of CUDA's runtime that mgc's host code uses, for the emulated device: the same names,
// types and meanings, on the CPU.

#ifndef MGC_KERNELS_CUDA_EMULATOR_RUNTIME_H_
#define MGC_KERNELS_CUDA_EMULATOR_RUNTIME_H_

#include <cstddef>

extern "C" {

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorLaunchFailure = 719
};
struct EmulatedStream;
using cudaStream_t = EmulatedStream*;
enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4
};

const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaMalloc(void** at, size_t bytes);
cudaError_t cudaFree(void* at);
cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaGetDevice(int* device);
}

#endif  // MGC_KERNELS_CUDA_EMULATOR_RUNTIME_H_
