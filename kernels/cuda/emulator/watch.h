// What tests ask of the emulated device, beside SetSeed and TakeFault (emulator.h).

#ifndef MGC_KERNELS_CUDA_EMULATOR_WATCH_H_
#define MGC_KERNELS_CUDA_EMULATOR_WATCH_H_

#include <cstddef>
#include <string>

namespace mgc::cuda::emulator {

// What is still there: memory, streams, events, graphs, captures that have not ended. "": nothing.
std::string Leaks();

// How much device memory there is, 16 GiB at first.
void SetDeviceMemory(size_t bytes);

}  // namespace mgc::cuda::emulator

#endif  // MGC_KERNELS_CUDA_EMULATOR_WATCH_H_
