// Training to sharded: gives every value a sharding and marks every change of sharding by a
// `reshard` node.
//
//   %y = matmul(%x, %w)                 %y.part: @m[dp,-]+tp = matmul(%x, %w)
//   %z = layer_norm(%y, ...)       ->   %y: @m[dp,-] = reshard(%y.part)
//                                       %z = layer_norm(%y, ...)
//
// One sweep in program order by the rules of docs/derivation.md (home, claims, owed, resolve, add,
// tie, lift, push); no code here knows tensor, sequence, vocabulary or data parallelism or ZeRO.
// Runs after differentiation, so that gradients and the optimizer are laid out by the same rules,
// and before partition, which only spells the reshards out.

#ifndef MGC_PASSES_GRAPH_SHARD_SHARD_H_
#define MGC_PASSES_GRAPH_SHARD_SHARD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"
#include "graph/types/mesh.h"
#include "passes/graph/shard/decisions.h"
#include "passes/graph/shard/strategy.h"

namespace mgc {

struct Sharded {
  Graph graph;
  // What the user may want to know: seeded axes that an op had to gather away, values left whole.
  std::vector<std::string> notes;
  std::vector<ValueId> homes;  // by value of the training graph: what it became
};

// Why each value lies where it does goes to `record`, if there is one (a few entries a value).
// InvalidArgument when a dim would have to be gathered that the strategy lets nobody gather, rows
// do not fit (passes/graph/shard/check_rows.h), or a pin does not fit its value. A pin may name
// axes of one rank: they cut nothing.
absl::StatusOr<Sharded> Shard(const Graph& training, const Mesh& mesh, const Strategy& strategy,
                              ShardRecord* record = nullptr);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_SHARD_SHARD_H_
