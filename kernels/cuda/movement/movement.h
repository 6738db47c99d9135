// Movers of elements of any type, issued to a stream.

#ifndef MGC_KERNELS_CUDA_MOVEMENT_MOVEMENT_H_
#define MGC_KERNELS_CUDA_MOVEMENT_MOVEMENT_H_

#include <cstdint>

#include "kernels/cuda/launch_shape.h"

namespace mgc::cuda {

// Dims of a dense result and the operand's elements from one to the next along each; none has size
// 1 and no two could be one.
struct TransposedDims {
  static constexpr int kMaxRank = 8;
  int rank = 0;
  int64_t extent[kMaxRank] = {};
  int64_t stride[kMaxRank] = {};
};

// to[i0, i1, ...] = from[sum of i_d · stride[d]], elements of 2, 4 or 8 bytes. One stride is 1.
int Transpose(Stream stream, const TransposedDims& dims, int element_bytes, const void* from,
              void* to);

// Copies `bytes` bytes in each of `outer` blocks, whose starts are `from_step` and `to_step` bytes
// apart. All are multiples of 2.
int CopyBlocks(Stream stream, int64_t outer, int64_t bytes, const char* from, int64_t from_step,
               char* to, int64_t to_step);

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_MOVEMENT_MOVEMENT_H_
