// From a use of an op that moves elements to what moves where, for the adapters of all backends.

#ifndef MGC_KERNELS_SHARED_MOVEMENT_SPEC_H_
#define MGC_KERNELS_SHARED_MOVEMENT_SPEC_H_

#include <cstdint>
#include <vector>

#include "kernels/kernel.h"

namespace mgc {

// The dims of a transpose's result, as few as describe it, none of size 1: sizes, and the operand's
// elements from one to the next along each. Of a single element there are none.
struct Transposition {
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;
};

Transposition TranspositionOf(const KernelSpec& spec);

// `bytes` bytes in each of `outer` blocks, whose starts are `from_step` and `to_step` bytes apart;
// the first ones lie `from` and `to` bytes behind those of operand and result.
struct BlockCopy {
  int64_t outer, bytes;
  int64_t from, from_step;
  int64_t to, to_step;
};

// Of a slice.
BlockCopy SliceOf(const KernelSpec& spec);
// One for each operand of a concat.
std::vector<BlockCopy> ConcatOf(const KernelSpec& spec);

}  // namespace mgc

#endif  // MGC_KERNELS_SHARED_MOVEMENT_SPEC_H_
