// Removes what does nothing, by laws that hold in every scalar model (graph/eval/models/scalar.h):
//
//   dropout with p = 0, reshard that is no pin, stop_gradient (training only)  ->  their operand
//   add(add(a, b), c), the inner sum used once, same phase and layer           ->  add(a, b, c)
//   two equal iota of one layer and phase                                      ->  one
//   nodes no output depends on                                                 ->  nothing
//
// Runs before differentiation, so that less is differentiated and residual sums are flat, and after
// it, when the maximum behind a stop-gradient has no backward any more.

#ifndef MGC_PASSES_GRAPH_SIMPLIFY_H_
#define MGC_PASSES_GRAPH_SIMPLIFY_H_

#include "graph/ir/graph.h"

namespace mgc {

Graph Simplify(const Graph& graph);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_SIMPLIFY_H_
