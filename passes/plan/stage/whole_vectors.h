// The vectors of a step (graph/ir/step_vector.h) with an entry for every parameter of the model,
// where its layers are folded (passes/fold/fold_model.h).

#ifndef MGC_PASSES_PLAN_STAGE_WHOLE_VECTORS_H_
#define MGC_PASSES_PLAN_STAGE_WHOLE_VECTORS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"
#include "passes/fold/layer_map.h"
#include "passes/plan/stage/parts.h"

namespace mgc {

// Where the entries of a node that packs a vector lie in the model's vector, which has those of its
// layers in their order. The operands of layers that are folded lie side by side
// (passes/plan/stage/check_fold.h).
struct VectorEntries {
  std::vector<int64_t> of_operands;
  std::map<int, int64_t> of_layers;  // of a layer of the model the first
  int64_t count = 0;                 // of all
};

VectorEntries EntriesOf(const Parts& parts, const LayerMap& layers, const Node& packing);

// A local graph whose vectors have the sizes of the model's, their operands as they were.
// FailedPrecondition where something else than a vector of that size or a scalar is made of one.
absl::StatusOr<Graph> WithWholeVectors(const Graph& folded, const LayerMap& layers);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_STAGE_WHOLE_VECTORS_H_
