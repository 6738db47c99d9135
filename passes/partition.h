// Sharded to local: spells every reshard out as collectives.
//
//   %y: @m[dp,tp] = reshard(%p)     ->   %y = reduce_scatter(%p) {label="g"}
//   (%p: @m[dp,-]+tp)
//
// In this order, each where needed (the rule "convert" of docs/derivation.md): reduce-scatter, one
// all-reduce over the axes still owed, all-to-all, all-gather, slice, lift. Runs right after shard,
// which has decided all layouts; nothing is decided here.

#ifndef MGC_PASSES_PARTITION_H_
#define MGC_PASSES_PARTITION_H_

#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/sharding.h"

namespace mgc {

struct LayoutStep {
  std::string op;   // a collective op
  Sharding result;  // after the step
};

// The steps from one layout to another.
std::vector<LayoutStep> StepsBetween(const Sharding& from, const Sharding& to);

Graph Partition(const Graph& sharded);

}  // namespace mgc

#endif  // MGC_PASSES_PARTITION_H_
