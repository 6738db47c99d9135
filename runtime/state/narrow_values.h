// Real values in the types that files and arenas hold them in: f32, bf16 and f16.

#ifndef MGC_RUNTIME_STATE_NARROW_VALUES_H_
#define MGC_RUNTIME_STATE_NARROW_VALUES_H_

#include "absl/types/span.h"
#include "graph/types/tensor_type.h"

namespace mgc {

// Writes the values side by side in `type`, each rounded once, to the nearest; of i8 they are whole
// numbers that it has. `to` needs no alignment, as `from` below.
void WriteValues(absl::Span<const float> values, DType type, char* to);

// Reads as many values of `type`, which is not i8, as there is room for.
void ReadValues(const char* from, DType type, absl::Span<float> values);

}  // namespace mgc

#endif  // MGC_RUNTIME_STATE_NARROW_VALUES_H_
