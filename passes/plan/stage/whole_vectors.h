// The vectors of a step (graph/ir/step_vector.h) with an entry for every parameter of the model,
// where its layers are folded (passes/fold/fold_model.h).

#ifndef MGC_PASSES_PLAN_STAGE_WHOLE_VECTORS_H_
#define MGC_PASSES_PLAN_STAGE_WHOLE_VECTORS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"
#include "passes/fold/layer_map.h"
#include "passes/plan/stage/parts.h"

namespace mgc {

// Of a node that packs a vector: for each operand its entry's number in the model's vector, where
// the entries of layers that one stands for follow each other; then the number of entries. The
// operands of such a layer lie side by side.
std::vector<int64_t> EntriesOf(const Parts& parts, const LayerMap& layers, const Node& packing);

// A local graph whose vectors have the sizes of the model's, their operands as they were.
// FailedPrecondition where something else than a vector of that size or a scalar is made of one.
absl::StatusOr<Graph> WithWholeVectors(const Graph& folded, const LayerMap& layers);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_STAGE_WHOLE_VECTORS_H_
