// Muon's direction on a single device (graph/ir/newton_schulz.h), by its definition.

#ifndef MGC_GRAPH_VERIFY_MEANING_REFERENCE_ORTHOGONAL_H_
#define MGC_GRAPH_VERIFY_MEANING_REFERENCE_ORTHOGONAL_H_

#include <cstdint>

#include "graph/eval/models/residue_model.h"
#include "graph/verify/meaning/step_inputs.h"

namespace mgc {

// A matrix whose first `row_dims` dims count its rows, made orthogonal, times
// 0.2 sqrt(max(rows, columns)).
ResidueTensor OrthogonalOf(const ResidueModel& scalars, ResidueTensor direction, int64_t row_dims);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_MEANING_REFERENCE_ORTHOGONAL_H_
