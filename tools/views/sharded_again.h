// What the pass `shard` made of a plan's model: done again from what the plan holds, its model, its
// mesh, its flags and the rows of its strategy, and held against the plan.

#ifndef MGC_TOOLS_VIEWS_SHARDED_AGAIN_H_
#define MGC_TOOLS_VIEWS_SHARDED_AGAIN_H_

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"
#include "graph/plan/plan.h"
#include "passes/graph/shard/decisions.h"
#include "passes/graph/shard/shard.h"
#include "passes/graph/shard/strategy.h"

namespace mgc {

struct ShardedAgain {
  Graph training;
  Strategy strategy;
  Sharded sharded;
  ShardRecord record;
};

// FailedPrecondition where a parameter or its states lie otherwise in the plan: it was edited, or
// made by another version. Values are in f32, whatever the plan computes in: that moves none.
absl::StatusOr<ShardedAgain> ShardAgain(const Plan& plan);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_SHARDED_AGAIN_H_
