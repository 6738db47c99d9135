// Ops that take a part of their operand, known by the attributes that say which.

#ifndef MGC_PASSES_GRAPH_STATES_RANGE_H_
#define MGC_PASSES_GRAPH_STATES_RANGE_H_

#include "graph/ir/graph.h"

namespace mgc {

// Whether attributes state a range, [begin, end), along a dim of operand 0.
inline bool StatesRange(const Node& node) {
  return !node.inputs.empty() && node.attrs.Find("dim") != nullptr &&
         node.attrs.Find("begin") != nullptr && node.attrs.Find("end") != nullptr;
}

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_STATES_RANGE_H_
