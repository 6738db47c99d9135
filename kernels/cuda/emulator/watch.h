// What tests ask of the emulated device, beside SetSeed and TakeFault (emulator.h).

#ifndef MGC_KERNELS_CUDA_EMULATOR_WATCH_H_
#define MGC_KERNELS_CUDA_EMULATOR_WATCH_H_

#include <cstddef>
#include <string>

namespace mgc::cuda::emulator {

// What is still there: memory, streams, events, graphs, captures that have not ended. "": nothing.
std::string Leaks();

// How much memory each device has, 16 GiB at first.
void SetDeviceMemory(size_t bytes);

// How many devices there are, 8 at first, and whether they can reach each other's memory. What has
// been given access has it no more. Of those that are gone nothing may be left.
void SetDevices(int count, bool peer_access = true);

}  // namespace mgc::cuda::emulator

#endif  // MGC_KERNELS_CUDA_EMULATOR_WATCH_H_
