#include "kernels/cuda/emulator/runtime.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "kernels/cuda/emulator/emulator.h"

namespace mgc::cuda::emulator {

int Launch(const LaunchShape& shape, Stream /*stream*/, std::function<void()> body) {
  RunBlocks(shape, body);
  return 0;
}

}  // namespace mgc::cuda::emulator

extern "C" {

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
  }
  return "unrecognized error code";
}

cudaError_t cudaMalloc(void** at, size_t bytes) {
  *at = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  if (*at == nullptr && bytes > 0) return cudaErrorMemoryAllocation;
  std::memset(*at, 0xff, bytes);
  return cudaSuccess;
}

cudaError_t cudaFree(void* at) {
  std::free(at);
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = nullptr;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t /*stream*/) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t /*stream*/) { return cudaSuccess; }

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind /*kind*/) {
  std::memmove(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind /*kind*/,
                            cudaStream_t /*stream*/) {
  std::memmove(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t /*stream*/) {
  std::memset(to, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t /*stream*/) {
  for (size_t row = 0; row < height; ++row) {
    std::memset(static_cast<char*>(to) + row * pitch, value, width);
  }
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
}
