// What a run can be on: the kernels and the device of `--device`.
//
// A program is linked with one of this room's libraries: `cpu` knows the CPU alone, `cuda` also
// GPUs (it needs the toolkit: bazel build --config=cuda), and `emulated`, for tests, GPUs that the
// CPU plays (kernels/cuda/emulator).

#ifndef MGC_TOOLS_DEVICES_DEVICES_H_
#define MGC_TOOLS_DEVICES_DEVICES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/kernel.h"
#include "runtime/run/device.h"

namespace mgc {

inline constexpr char kCpuDevice[] = "cpu";
inline constexpr char kCudaDevice[] = "cuda";

struct RunDevice {
  std::vector<KernelEntry> entries;
  KernelHost host = KernelHost::kCpu;
  DeviceFactory make;

  KernelList kernels() const { return {entries, host}; }
};

struct CudaSwitches {
  bool graphs = true;       // steps are captured and launched as a whole
  bool check_each = false;  // the host waits behind each kernel
  int gpus = 0;             // of this machine that are used; 0: all
  bool tf32 = false;        // products of f32 round their operands to TF32
};

// FailedPrecondition for a device that this program was built without.
absl::StatusOr<RunDevice> MakeRunDevice(absl::string_view name, const CudaSwitches& cuda);

// The GPUs that this process sees.
struct Gpus {
  int count = 0;
  int64_t memory = 0;  // bytes of the first one
};
// FailedPrecondition where there are none, or the program was built without.
absl::StatusOr<Gpus> FindGpus();

}  // namespace mgc

#endif  // MGC_TOOLS_DEVICES_DEVICES_H_
