#include "kernels/cpu/cpu_kernels.h"
#include "runtime/run/device_cpu.h"
#include "tools/devices/devices.h"

namespace mgc {
namespace {

absl::Status BuiltWithout() {
  return absl::FailedPreconditionError(
      "this program was built without CUDA; on a machine with the toolkit, `bazel build -c opt "
      "--config=cuda //tools:mgc-run //tools:mgc-generate //tools:mgc-bench` builds those that "
      "have it");
}

}  // namespace

absl::StatusOr<RunDevice> MakeRunDevice(absl::string_view name, const CudaSwitches& /*cuda*/) {
  if (name == kCpuDevice) return RunDevice{CpuKernels(), KernelHost::kCpu, CpuDevice::Create};
  return BuiltWithout();
}

absl::StatusOr<Gpus> FindGpus() { return BuiltWithout(); }

}  // namespace mgc
