// One check per level of the IR: what every graph of that level keeps, and every pass may rely on
// (docs/ir.md). A check finds all violations; each has a label.
//
// Every level:
//   graph_c1  operands are made before their use
//   graph_c2  the results' element types and sizes are those that the op infers
//   graph_c3  inputs have the attributes of their kind (graph/ir/assemble.h)
//   graph_c4  an output's value exists; what is assigned is an input of the same element type and
//             sizes, and is assigned once
//   graph_c5  layers lie between the embedding and the head, and no forward node of a layer reads
//             from a later one
//   graph_c6  no node reads a value of a later phase; a value is the gradient of one of its shape
// logical: the forward pass of one micro-batch with its losses
//   logical_c1  no value has a sharding
//   logical_c2  every node is in the forward phase
//   logical_c3  a loss is a scalar that a node computes, with a finite weight
//   logical_c4  no collective ops
//   logical_c5  inputs are parameters, data, scalars and states that forward writes into
//               (graph/ir/results.h)
//   logical_c6  outputs are losses, reports and what such states are assigned
//   logical_c7  the report `count` is a scalar that a node computes
// training: plus backward, accumulation and update
//   training_c1  no value has a sharding
//   training_c2  no collective ops
//   training_c3  an accumulator is assigned, in the forward or backward phase, what an `accumulate`
//                of itself gives
//   training_c4  a parameter that has an accumulator is assigned in the update, and the other way
//                round
//   training_c5  a state belongs to a parameter and is assigned in the update, or is one of those
// sharded: every value is laid out, `reshard` nodes alone change a sharding
//   sharded_c1  every value has a sharding that fits its type and the mesh
//   sharded_c2  no collective ops
//   sharded_c3  the operands of a node cut each factor of its rule alike, a whole factor not at
//               all, and no axis serves two factors
//   sharded_c4  the results are cut as the operands and the rule say
//   sharded_c5  what a value owes is what contracted factors and linear operands leave; of the
//               graph's inputs only accumulators owe
//   sharded_c6  what is assigned has the sharding of its input; what is reported owes nothing
// local: collectives change shardings
//   local_c1  no `reshard` nodes
//   local_c3  a collective's result is its operand, changed by exactly what the op is for
//   and sharded_c1, sharded_c3 to sharded_c6

#ifndef MGC_GRAPH_IR_CHECK_H_
#define MGC_GRAPH_IR_CHECK_H_

#include "absl/status/status.h"
#include "graph/base/diagnostic.h"
#include "graph/ir/graph.h"

namespace mgc {

// All violations of the graph's own level: the structure's in program order, then the level's. The
// place of each is the value, `%h`, behind `file:line:column: ` where the user's source is known.
Diagnostics FindViolations(const Graph& graph);

// Whether a value of this type may be a loss or the count of tokens: a scalar, no index.
bool IsRealScalar(const TensorType& type);

// OK, or InvalidArgument with them.
absl::Status CheckGraph(const Graph& graph);

}  // namespace mgc

#endif  // MGC_GRAPH_IR_CHECK_H_
