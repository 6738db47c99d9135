// One layer of a test's choosing, and the collectives that come out of it.

#ifndef MGC_TESTS_DERIVATION_ONE_LAYER_H_
#define MGC_TESTS_DERIVATION_ONE_LAYER_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "frontends/builder.h"
#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "passes/config/parallel_config.h"
#include "passes/graph/shard/strategy.h"
#include "tests/derivation/collective_table.h"

namespace mgc {

using LayerText = std::function<Tensor(ModelBuilder& b, Tensor x)>;

template <class T>
T Must(absl::StatusOr<T> result) {
  MGC_CHECK(result.ok()) << result.status().ToString();
  return *std::move(result);
}

inline constexpr int64_t kHeads = 8;
inline constexpr int64_t kKvHeads = 2;

// A word table, one layer on its rows, and the sum of what comes out as the loss.
Graph OneLayer(const LayerText& text, int64_t kv_heads = kKvHeads);

// The local training graph under a strategy, or Megatron's under a configuration.
absl::StatusOr<Graph> LocalOf(const Graph& logical, const Mesh& mesh, const Strategy& strategy);
Graph LocalOf(const Graph& logical, const ParallelConfig& parallel, int64_t kv_heads = kKvHeads);

// A product with a bias; `residual` may be none.
Tensor Projected(ModelBuilder& b, const char* name, Tensor x, const char* spec, Tensor residual);
// Cut over tp behind `up`, owed behind `down`.
Tensor TwoProducts(ModelBuilder& b, Tensor x);

// The collectives of the layer in a phase.
CollectiveTable LayerKinds(const Graph& local, Phase phase);

}  // namespace mgc

#endif  // MGC_TESTS_DERIVATION_ONE_LAYER_H_
