// Which values of a training step are the gradients of its parameters.

#ifndef MGC_GRAPH_IR_STEP_GRADIENTS_H_
#define MGC_GRAPH_IR_STEP_GRADIENTS_H_

#include "absl/container/flat_hash_map.h"
#include "graph/ir/graph.h"

namespace mgc {

// By parameter, the sum of gradients over the step that its optimizer reads: the operand that the
// op calls `grad`. Without what is not trained, and empty for a graph without an update. A value's
// name does not say it: what a sum is called depends on the collectives that it takes.
absl::flat_hash_map<ValueId, ValueId> GradientsOf(const Graph& step);

}  // namespace mgc

#endif  // MGC_GRAPH_IR_STEP_GRADIENTS_H_
