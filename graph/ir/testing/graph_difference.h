// For tests: whether two graphs say the same.

#ifndef MGC_GRAPH_IR_TESTING_GRAPH_DIFFERENCE_H_
#define MGC_GRAPH_IR_TESTING_GRAPH_DIFFERENCE_H_

#include <string>

#include "graph/ir/graph.h"

namespace mgc {

// The first difference of two graphs, field by field, or the empty string. Values are compared by
// name; with `numbering`, numbers of values and files count too.
std::string GraphDifference(const Graph& a, const Graph& b, bool numbering);

// A graph that uses every field, with names and numbers that are hard to write down.
Graph OddGraph();

}  // namespace mgc

#endif  // MGC_GRAPH_IR_TESTING_GRAPH_DIFFERENCE_H_
