// From a use of a piece of the cross-entropy to what its kernels take, for the adapters of all
// backends.

#ifndef MGC_KERNELS_SHARED_LOSS_SPEC_H_
#define MGC_KERNELS_SHARED_LOSS_SPEC_H_

#include "kernels/kernel.h"
#include "kernels/shared/logits_shape.h"
#include "kernels/spec.h"

namespace mgc {

// Of operand 0, whose last dim is the vocabulary.
inline LogitsShape LogitsOf(const KernelSpec& spec) {
  const DimPiece& v = PieceNamed(spec, "v");
  return {LeadingDims(spec.input_shapes[0]), LastDim(spec.input_shapes[0]), v.valid, v.begin};
}

}  // namespace mgc

#endif  // MGC_KERNELS_SHARED_LOSS_SPEC_H_
