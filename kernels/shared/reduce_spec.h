// From a use of a reduction or a broadcast to what its kernels take, for the adapters of all
// backends.

#ifndef MGC_KERNELS_SHARED_REDUCE_SPEC_H_
#define MGC_KERNELS_SHARED_REDUCE_SPEC_H_

#include <cstdint>
#include <vector>

#include "graph/types/tensor_type.h"
#include "kernels/kernel.h"

namespace mgc {

// A box of indices: extents and strides, outer to inner.
struct Box {
  std::vector<int64_t> extents, strides;

  int64_t size() const { return NumElements(extents); }
  // Where element `i` in row-major order lies.
  int64_t At(int64_t i) const {
    int64_t offset = 0;
    for (size_t d = extents.size(); d-- > 0;) {
      offset += i % extents[d] * strides[d];
      i /= extents[d];
    }
    return offset;
  }
};

// The same elements in the same order, with as few dims as can be.
Box Merged(const Box& box);

// The dims of operand 0 that stay and those that are reduced, the latter as far as they are valid.
struct Reduction {
  Box kept, reduced;
};
Reduction ReductionOf(const KernelSpec& spec);

// Whether the reduced dims are neighbours; then the operand is [outer, reduced, inner], where room
// beyond valid pieces counts as reduced.
bool IsOneRun(const KernelSpec& spec, int64_t* outer, int64_t* reduced, int64_t* inner);

// Whether only the last dim is reduced.
bool ReducesLastDim(const KernelSpec& spec);

// The operand of a broadcast seen from its result: strides are 0 along the dims that are made.
Box BroadcastBox(const KernelSpec& spec);

}  // namespace mgc

#endif  // MGC_KERNELS_SHARED_REDUCE_SPEC_H_
