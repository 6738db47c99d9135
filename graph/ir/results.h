// Models that are run for what they compute and not trained.
//
// A report that is a tensor is a *result*. A model whose parameters are all kept (train=0) and that
// has results is *asked*: its step runs forward alone, without dropout, and leaves the results of
// its one micro-batch. Of a model that is trained reports beside the count are looked at by nobody.

#ifndef MGC_GRAPH_IR_RESULTS_H_
#define MGC_GRAPH_IR_RESULTS_H_

#include <vector>

#include "graph/ir/graph.h"

namespace mgc {

// Those reports, in their order, that nodes make and that have dims.
std::vector<const GraphOutput*> ResultsOf(const Graph& graph);

// Of a logical model, or of the step that is made of it.
bool IsAsked(const Graph& graph);

}  // namespace mgc

#endif  // MGC_GRAPH_IR_RESULTS_H_
