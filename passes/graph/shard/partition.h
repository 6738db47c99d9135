// Sharded to local: spells every reshard out as collectives.
//
//   %y: @m[dp,tp] = reshard(%p)     ->   %y = reduce_scatter(%p) {label="g"}
//   (%p: @m[dp,-]+tp)
//
// In this order, each where needed (the rule "convert" of docs/derivation.md): reduce-scatter, one
// all-reduce over the axes still owed, all-to-all, all-gather, slice, lift. Runs right after shard,
// which has decided all shardings; nothing is decided here.

#ifndef MGC_PASSES_GRAPH_SHARD_PARTITION_H_
#define MGC_PASSES_GRAPH_SHARD_PARTITION_H_

#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/types/mesh.h"
#include "graph/types/sharding.h"
#include "graph/types/tensor_type.h"

namespace mgc {

struct ShardingStep {
  std::string op;   // a collective op
  Sharding result;  // after the step
};

// The steps from one sharding of a value to another. Of a dim that is cut unevenly the pieces are
// put together before they are cut otherwise (PiecesNest).
std::vector<ShardingStep> StepsBetween(const Sharding& from, const Sharding& to,
                                       const TensorType& type, const Mesh& mesh);

Graph Partition(const Graph& sharded);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_SHARD_PARTITION_H_
