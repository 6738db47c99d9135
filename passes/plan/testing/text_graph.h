// Graphs of tests as text: read, and listed in a form that is easy to compare.

#ifndef MGC_PASSES_PLAN_TESTING_TEXT_GRAPH_H_
#define MGC_PASSES_PLAN_TESTING_TEXT_GRAPH_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/ir/graph.h"

namespace mgc {

// The graph in `text`; a failure of the running test, and an empty graph, if it cannot be read.
Graph ReadGraph(absl::string_view text);

// `h = add(x, y)` for every node of a phase, in program order.
std::vector<std::string> Listing(const Graph& graph, Phase phase = Phase::kForward);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_TESTING_TEXT_GRAPH_H_
