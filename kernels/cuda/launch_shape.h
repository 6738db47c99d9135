// How many threads a kernel is launched with: plain numbers, made and tested on the host.

#ifndef MGC_KERNELS_CUDA_LAUNCH_SHAPE_H_
#define MGC_KERNELS_CUDA_LAUNCH_SHAPE_H_

#include <cstdint>

namespace mgc::cuda {

// A cudaStream_t, for those who include no CUDA.
using Stream = void*;

// What device code makes the micro-batch's first sample of: the step's, where the device has it,
// and the micro-batch's place in the step. So a step that is run again takes other samples.
struct SamplePlace {
  const int64_t* step = nullptr;
  int64_t in_step = 0;
};

inline constexpr int kMostThreads = 1024;                  // of a block
inline constexpr int64_t kMostBlocksX = 0x7fffffff;        // of a grid along x
inline constexpr int64_t kMostBlocksYZ = 65535;            // along y, and along z
inline constexpr int64_t kSharedWithoutAsking = 48 << 10;  // dynamic shared bytes of any kernel
inline constexpr int64_t kMostShared = 99 << 10;           // on every architecture built for
inline constexpr int64_t kMostSharedOfGroups = 227 << 10;  // on those with warpgroups

struct LaunchShape {
  unsigned grid_x = 0;
  unsigned grid_y = 1;
  unsigned grid_z = 1;
  unsigned block = 0;  // threads, along x
  int64_t shared_bytes = 0;
  int64_t most_shared = kMostShared;  // of what it is launched on

  int64_t blocks() const { return int64_t{grid_x} * grid_y * grid_z * (block > 0 ? 1 : 0); }
};

// Whether every architecture takes it that has as much shared memory as the shape asks for at most.
bool IsLaunchable(const LaunchShape& shape);

// Blocks of `block` threads for `threads` threads, at most as many as `most_blocks`: kernels go
// over the rest in strides of the whole grid.
LaunchShape ShapeFor(int64_t threads, int block = 256, int64_t most_blocks = int64_t{132} * 16);

// One block for each of `rows` rows, at most kMostBlocksX.
LaunchShape ShapeForRows(int64_t rows, int block, int64_t shared_bytes = 0);

// Whether vectors of `bytes` bytes may be used for what lies at an address and has such a stride.
inline bool IsAligned(const void* p, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(p) % static_cast<uintptr_t>(bytes) == 0;
}

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_LAUNCH_SHAPE_H_
