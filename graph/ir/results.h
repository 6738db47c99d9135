// Models that are run for what they compute and not trained.
//
// A model whose parameters are all kept (train=0) is *asked*: its step runs forward alone, without
// dropout, and reports losses, as an evaluation of a model that is trained does. A report that is a
// tensor is a *result*, which such a step leaves of its one micro-batch; a step that trains leaves
// none.

#ifndef MGC_GRAPH_IR_RESULTS_H_
#define MGC_GRAPH_IR_RESULTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "graph/ir/graph.h"

namespace mgc {

// Those reports, in their order, that nodes make and that have dims.
std::vector<const GraphOutput*> ResultsOf(const Graph& graph);

// Of a logical model, or of the step that is made of it.
bool IsAsked(const Graph& graph);

// Whether an input is a tensor that a step of such a model leaves for the next, as a cache of keys
// and values: a state of no parameter, which a node of forward writes into and is assigned to it.
bool IsKeptState(const Graph& graph, const GraphInput& input);

// The data input, i64[batch, kept], that has a 1 for each kept token of a sample that the last one
// sees: as far back as they go (window 0), or itself and those before it in a window of so many.
std::string SeenInput(int64_t window);
// The window of an input of that name, 0 for none; nothing for any other name.
absl::optional<int64_t> WindowOfSeen(absl::string_view name);

}  // namespace mgc

#endif  // MGC_GRAPH_IR_RESULTS_H_
