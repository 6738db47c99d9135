// A strategy: which axes cut which logical dims. An ordered table; a row is a pattern of dim names
// with the axes it gives.
//
//   *:                   batch -> dp
//   *:                   heads -> tp, kv_heads -> tp.0, mlp -> tp, vocab -> tp
//   (batch, seq, embed): seq -> tp            sequence parallelism: the residual stream only
//
// Data, tensor, vocabulary and sequence parallelism are rows of this table and nothing else.

#ifndef MGC_PASSES_GRAPH_SHARD_STRATEGY_H_
#define MGC_PASSES_GRAPH_SHARD_STRATEGY_H_

#include <string>
#include <utility>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/types/mesh.h"
#include "graph/types/sharding.h"
#include "passes/config/parallel_config.h"

namespace mgc {

struct StrategyRow {
  std::vector<std::string> pattern;  // the exact names of all dims; empty: any value
  std::vector<std::pair<std::string, AxisList>> rules;  // dim name -> axes, major first
};

struct Strategy {
  std::vector<StrategyRow> rows;
  // Axes along which optimizer state may be stored in pieces (ZeRO-1): per parameter, those of them
  // over which its gradient is owed.
  AxisSet storage_axes;

  // The sharding the rows give a value; an axis is used at most once, earlier rows and dims first.
  Sharding Seed(const TensorType& type) const;
  // Whether a forward value of this type is of the residual stream, dims (batch, seq, embed): its
  // home is its Seed, whoever makes it.
  bool HasHome(const TensorType& type) const;
};

// The mesh of a configuration: axes in its order; tp is split into (tp.0, tp.1) when fewer kv heads
// than tp ranks must be shared, tp.0 ranks wide.
absl::StatusOr<Mesh> MeshOf(const ParallelConfig& config, int64_t kv_heads);

// Megatron-LM's sharding of a configuration on its mesh.
Strategy MegatronStrategy(const ParallelConfig& config, int64_t kv_heads, const Mesh& mesh);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_SHARD_STRATEGY_H_
