// Parameters that no loss depends on.
//
//   param %spare: f32[8]   ->   param %spare: f32[8] {train=0}
//
// A step has no gradient for such a parameter: nothing reads it, or what reads it reaches no loss,
// or lies behind a stop_gradient. It is kept as it is, as if the model had said so. Runs on the
// model itself, before all other passes: the plan is of the model that comes out, and the proof
// demands what it says.

#ifndef MGC_PASSES_GRAPH_FREEZE_UNUSED_H_
#define MGC_PASSES_GRAPH_FREEZE_UNUSED_H_

#include <string>
#include <vector>

#include "graph/ir/graph.h"

namespace mgc {

// A note names the parameters. Where no loss depends on any, nothing is changed and Differentiate
// refuses the graph.
Graph FreezeUnused(Graph logical, std::vector<std::string>* notes);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_FREEZE_UNUSED_H_
