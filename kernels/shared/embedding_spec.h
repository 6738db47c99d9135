// From a use of an embedding op to the table its kernels take, for the adapters of all backends.

#ifndef MGC_KERNELS_SHARED_EMBEDDING_SPEC_H_
#define MGC_KERNELS_SHARED_EMBEDDING_SPEC_H_

#include <cstdint>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/shared/table_shape.h"
#include "kernels/spec.h"

namespace mgc {

// Of operand 0.
inline TableShape TableShapeOf(const KernelSpec& spec) {
  const DimPiece& v = PieceNamed(spec, "v");
  return {spec.input_shapes[0][0], spec.input_shapes[0][1], v.valid, v.begin};
}

// Of operands 0 and 1.
inline WrittenRows WrittenRowsOf(const KernelSpec& spec) {
  const std::vector<int64_t>& into = spec.input_shapes[0];
  return {into[0], into[1], spec.input_shapes[1][1], into[2] * into[3]};
}

}  // namespace mgc

#endif  // MGC_KERNELS_SHARED_EMBEDDING_SPEC_H_
