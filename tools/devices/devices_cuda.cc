#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cuda/api.h"
#include "kernels/cuda/cuda_kernels.h"
#include "runtime/cuda/cuda_memory.h"
#include "runtime/cuda/device_cuda.h"
#include "runtime/run/device_cpu.h"
#include "tools/devices/devices.h"

namespace mgc {

absl::StatusOr<RunDevice> MakeRunDevice(absl::string_view name, const CudaSwitches& cuda) {
  if (name == kCpuDevice) return RunDevice{CpuKernels(), KernelHost::kCpu, CpuDevice::Create};
  const CudaOptions options = {cuda.gpus, cuda.graphs, cuda.check_each};
  const F32Products f32 = cuda.tf32 ? F32Products::kTf32 : F32Products::kWhole;
  return RunDevice{CudaKernels(f32), KernelHost::kGpu,
                   [options](const DeviceRoom& room, Parallel& parallel) {
                     return CudaDevice::Create(options, room, parallel);
                   }};
}

absl::StatusOr<Gpus> FindGpus() {
  Gpus gpus;
  const cudaError_t found = cudaGetDeviceCount(&gpus.count);
  if (found != cudaSuccess || gpus.count < 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is no GPU here: ", cudaGetErrorString(found)));
  }
  size_t free = 0, total = 0;
  MGC_RETURN_IF_ERROR(CudaStatus(cudaMemGetInfo(&free, &total), "the GPU's memory"));
  gpus.memory = static_cast<int64_t>(total);
  return gpus;
}

}  // namespace mgc
