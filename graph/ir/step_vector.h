// The vectors of a step: scalars that its update packs (OpRole::kPack), losses and tokens in one,
// squares of gradients in the other.

#ifndef MGC_GRAPH_IR_STEP_VECTOR_H_
#define MGC_GRAPH_IR_STEP_VECTOR_H_

#include "graph/ir/graph.h"
#include "graph/ir/op.h"

namespace mgc {

// Whether a node packs scalars of the step, each of one stage, where they lie. The same op in a
// model's own nodes is computed like any other.
inline bool PacksStepVector(const Node& node) {
  return node.phase == Phase::kUpdate && node.op->Has(OpRole::kPack);
}

}  // namespace mgc

#endif  // MGC_GRAPH_IR_STEP_VECTOR_H_
