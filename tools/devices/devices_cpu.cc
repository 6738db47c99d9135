#include "kernels/cpu/cpu_kernels.h"
#include "runtime/run/device_cpu.h"
#include "tools/devices/devices.h"

namespace mgc {

absl::StatusOr<RunDevice> MakeRunDevice(absl::string_view name, const CudaSwitches& /*cuda*/) {
  if (name == kCpuDevice) return RunDevice{CpuKernels(), KernelHost::kCpu, CpuDevice::Create};
  return absl::FailedPreconditionError(
      "this mgc-run was built without CUDA; on a machine with the toolkit, `bazel build -c opt "
      "--config=cuda //tools:mgc-run` builds one with it");
}

}  // namespace mgc
