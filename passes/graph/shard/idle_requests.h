// Ranks that were asked for and would all do the same: requests of a configuration that came to
// nothing for this model.

#ifndef MGC_PASSES_GRAPH_SHARD_IDLE_REQUESTS_H_
#define MGC_PASSES_GRAPH_SHARD_IDLE_REQUESTS_H_

#include "absl/status/statusor.h"
#include "graph/base/diagnostic.h"
#include "graph/ir/graph.h"
#include "passes/config/parallel_config.h"
#include "passes/config/strategy_spec.h"

namespace mgc {

// What of the configuration a sharded graph shows no trace of, each with the dims that the strategy
// speaks of and those that the model has:
//   shard_c3  an axis that cuts no value
//   shard_c4  sequence parallelism that brings no value anywhere
//   shard_c5  ZeRO, of more than one data-parallel rank, that stores no states in pieces, no
//             gradients from level 2 on, no parameters with level 3
// Errors: those of BindStrategy.
absl::StatusOr<Diagnostics> IdleRequests(const Graph& sharded, const ParallelConfig& config,
                                         const StrategySpec& spec);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_SHARD_IDLE_REQUESTS_H_
