// How many threads share a row of groups of 16 bytes (rows.h).

#ifndef MGC_KERNELS_CUDA_DEVICE_ROW_SHAPE_H_
#define MGC_KERNELS_CUDA_DEVICE_ROW_SHAPE_H_

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/launch_shape.h"

namespace mgc::cuda {

inline constexpr int64_t kMostRowElements = int64_t{1} << 30;  // columns are of 32 bits
inline constexpr int kMostTeam = 512;                          // threads
inline constexpr int kTeamsOfBlock = 4;                        // where a row is a warp's
inline constexpr int kGroupsOfThread = 4;                      // at least, unless the row ends

// Whether a row is a block's, not a warp's.
inline bool IsBlockRow(int64_t groups) { return groups > int64_t{32} * kGroupsOfThread; }

inline LaunchShape RowShape(int64_t rows, int64_t groups) {
  if (!IsBlockRow(groups)) {
    return ShapeForRows((rows + kTeamsOfBlock - 1) / kTeamsOfBlock, 32 * kTeamsOfBlock);
  }
  int64_t threads = 64;
  while (threads < kMostTeam && threads * kGroupsOfThread < groups) threads *= 2;
  return ShapeForRows(rows, static_cast<int>(threads));
}

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_DEVICE_ROW_SHAPE_H_
