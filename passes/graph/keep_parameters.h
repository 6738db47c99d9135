// A model that is evaluated and not trained.
//
//   param %w: f32[embed,mlp]     ->     param %w: f32[embed,mlp] {train=0}
//
// Its step is then what an evaluation of others is (graph/ir/results.h): forward alone, without
// dropout, with the memory that this takes. Runs on the model itself.

#ifndef MGC_PASSES_GRAPH_KEEP_PARAMETERS_H_
#define MGC_PASSES_GRAPH_KEEP_PARAMETERS_H_

#include "graph/ir/graph.h"

namespace mgc {

// Says of all parameters that nothing trains them.
Graph KeepParameters(const Graph& model);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_KEEP_PARAMETERS_H_
