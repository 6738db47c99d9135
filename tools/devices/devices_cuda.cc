#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cuda/cuda_kernels.h"
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

}  // namespace mgc
