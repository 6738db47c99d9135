// Local graphs to a plan: cuts the model into chunks and the chunks into segments.
//
//   layer 3 forward, layer 4 forward   ->   segment layer.forward, called for layers 3 and 4
//   stage 1 = layers 3 and 4           ->   chunk { layer.forward(3), layer.forward(4) }
//
// Every node lands in the part of its layer and phase (passes/plan/stage/parts.h); equal parts of
// different layers and classes become one segment. Values a rank keeps are given their place
// relative to a formal: parameters, gradients and optimizer state in the block of their layer,
// working copies of parameters beside them, what
// forward keeps for backward in the chunk's frame, what other stages read at the boundaries. Runs
// after everything that works on the graph (shard, partition, recompute, fuse), because from here
// on layers are folded; addresses and order follow in allocate and order.
//
// The graphs may be of a folded model already (passes/fold/fold_model.h). Then `placement` is of
// the whole one, and the result is the one that its graphs would have.

#ifndef MGC_PASSES_PLAN_STAGE_STAGE_H_
#define MGC_PASSES_PLAN_STAGE_STAGE_H_

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"
#include "passes/config/place_layers.h"
#include "passes/fold/layer_map.h"
#include "passes/plan/forms/plan_forms.h"

namespace mgc {

// Without nodes in `eval` the plan evaluates nothing. `layers` are those of the graphs.
// InvalidArgument: stage_c3; FailedPrecondition where folded graphs cannot be staged
// (passes/plan/stage/check_fold.h, whole_vectors.h), or the first use of a segment would have other
// source locations than its layer.
absl::StatusOr<StagedPlan> Stage(const Graph& train, const Graph& eval,
                                 const LayerPlacement& placement, const LayerMap& layers);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_STAGE_STAGE_H_
