// How launches get from streams to blocks.

#ifndef MGC_KERNELS_CUDA_EMULATOR_LAUNCH_H_
#define MGC_KERNELS_CUDA_EMULATOR_LAUNCH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/cuda/emulator/memory.h"
#include "kernels/cuda/launch_shape.h"

namespace mgc::cuda::emulator {

// Runs all blocks on this thread. `allocations` are those that accesses are held against. "" or
// what went wrong in one; the others are then left.
std::string RunLaunch(const LaunchShape& shape, uint64_t seed, const void* kernel,
                      const std::function<void()>& body,
                      const std::vector<Memory::Region>& allocations);

// What SetSeed has set.
uint64_t SeedOfThread();

}  // namespace mgc::cuda::emulator

#endif  // MGC_KERNELS_CUDA_EMULATOR_LAUNCH_H_
