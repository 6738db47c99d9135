// How many threads sum the columns of matrices (column_sums.h).

#ifndef MGC_KERNELS_CUDA_DEVICE_STRIP_SHAPE_H_
#define MGC_KERNELS_CUDA_DEVICE_STRIP_SHAPE_H_

#include <cstdint>

#include "kernels/cuda/launch_shape.h"

namespace mgc::cuda {

// Groups of 16 bytes of a strip: with two a row's piece is a whole sector of 32 bytes, and 768
// columns of bf16 are still 48 blocks.
inline constexpr int kStripGroups = 2;

inline int64_t StripsOf(int64_t cols, int per_group) {
  const int64_t strip = int64_t{kStripGroups} * per_group;
  return (cols + strip - 1) / strip;
}

// What the parts of sums over rows stand in, if there are several: `parts` times as many floats as
// there are sums.
struct PartsRoom {
  float* at = nullptr;
  int parts = 1;

  // Of `sums` sums, as many parts as there is room for in `bytes` bytes.
  static PartsRoom In(void* workspace, int64_t bytes, int64_t sums) {
    if (sums == 0 || bytes == 0) return {};
    return {static_cast<float*>(workspace),
            static_cast<int>(bytes / (sums * int64_t{sizeof(float)}))};
  }
};

// One block a strip, for `matrices` matrices of `rows` rows.
inline LaunchShape StripShape(int64_t matrices, int64_t rows, int64_t cols, int per_group) {
  int64_t threads = 64;
  while (threads < kMostThreads && threads * 4 < rows * kStripGroups) threads *= 2;
  return ShapeForRows(matrices * StripsOf(cols, per_group), static_cast<int>(threads));
}

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_DEVICE_STRIP_SHAPE_H_
