// The collectives that are a rank's own affair, issued to a stream.

#ifndef MGC_KERNELS_CUDA_LOCAL_MOVE_LOCAL_MOVE_H_
#define MGC_KERNELS_CUDA_LOCAL_MOVE_LOCAL_MOVE_H_

#include <cstdint>

#include "kernels/cuda/launch_shape.h"

namespace mgc::cuda {

// `rows` rows of `to_stride` units one after the other: first `valid` units of the operand's row,
// then zeros. A unit is a T: uint8_t, uint16_t, uint32_t, uint64_t or Unit16.
struct RowMove {
  int64_t rows = 0;
  int64_t from_stride = 0;
  int64_t valid = 0;
  int64_t to_stride = 0;
};

// Of 16 bytes.
struct alignas(16) Unit16 {
  uint64_t half[2];
};

// Operand and result are apart.
template <class T>
int MoveRows(Stream stream, const RowMove& move, const T* from, T* to);

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_LOCAL_MOVE_LOCAL_MOVE_H_
