// Sums of the gradients of parameters that several pipeline ranks hold.
//
// A class adds what its layers have collected of such a gradient in the place of the first of these
// accumulators; then the classes join in one sum (passes/plan/stage/shared_params.h). So each needs
// an accumulator that is added as it is. A class lacks one whose layers only read the parameter,
// behind a stop_gradient; or have its gradient in other layouts than the sum, into which the update
// brings it first. It is given one that no micro-batch adds to: zero, as all are when a step
// begins.
//
//   %w/grad of layer 0, %w of layer 1 too   ->   %w/grad.sum = add(%w/grad.next, %w/grad.given)
//                                                with %w/grad.given = 0 in layer 1

#ifndef MGC_PASSES_PLAN_STAGE_SHARED_SUMS_H_
#define MGC_PASSES_PLAN_STAGE_SHARED_SUMS_H_

#include "absl/types/optional.h"
#include "graph/ir/graph.h"
#include "passes/config/place_layers.h"
#include "passes/fold/layer_map.h"

namespace mgc {

// Attribute of an accumulator that nothing adds to: the layer that it belongs to.
inline constexpr char kGivenToAttr[] = "given_to";

// The local training graph with the accumulators that are given, operands of a sum that are added
// as they are before those that are not; none where nothing is to change.
absl::optional<Graph> WithSharedSums(const Graph& train, const LayerPlacement& placement,
                                     const LayerMap& layers);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_STAGE_SHARED_SUMS_H_
