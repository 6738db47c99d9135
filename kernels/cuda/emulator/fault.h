// The first thing that went wrong on the emulated device.

#ifndef MGC_KERNELS_CUDA_EMULATOR_FAULT_H_
#define MGC_KERNELS_CUDA_EMULATOR_FAULT_H_

#include <sstream>
#include <string>

namespace mgc::cuda::emulator {

// Text of anything that streams take.
template <class... Parts>
std::string Text(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

// Keeps `what` unless there is one already.
void Fault(const std::string& what);
// Whether there has been any since the last TakeFault (emulator.h).
bool HasFault();

// As Fault, from what ran on the device: calls return `error`, a cudaError_t, from now on.
void FaultOfExecution(int error, const std::string& what);
// 0: none.
int StickyError();

}  // namespace mgc::cuda::emulator

#endif  // MGC_KERNELS_CUDA_EMULATOR_FAULT_H_
