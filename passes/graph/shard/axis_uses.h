// Why a sharded graph is laid out as it is: for every axis of the mesh what it cuts and what stays
// whole, each with the row, rule or pin that decided.

#ifndef MGC_PASSES_GRAPH_SHARD_AXIS_USES_H_
#define MGC_PASSES_GRAPH_SHARD_AXIS_USES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/ir/graph.h"
#include "passes/graph/shard/shard.h"
#include "passes/graph/shard/strategy.h"

namespace mgc {

enum class ValueKind : uint8_t {
  kParameters,
  kGradients,  // of parameters, before they are reduced
  kStates,     // of the optimizer
  kActivations,
  kActivationGradients,
};
absl::string_view WordOf(ValueKind kind);  // `parameters`, `activation gradients`

enum class AxisEffect : uint8_t {
  kCuts,    // a dim
  kStores,  // the flat tile, in pieces
  kSums,    // nothing: every rank holds a term of a sum or a maximum
  kKeeps,   // nothing, although a row asks for a dim to be cut: every rank holds the same
  kLeaves,  // nothing, and no row asks: every rank holds the same
};
absl::string_view WordOf(AxisEffect effect);  // `cuts`, `keeps`

// The values of one kind that one axis treats alike for one reason.
struct AxisUse {
  std::string axis;  // of the mesh: `tp.0`
  AxisEffect effect = AxisEffect::kLeaves;
  ValueKind kind = ValueKind::kParameters;
  std::string dim;    // that is cut, or that a row asks to be
  std::string by;     // the row, rule or pin that decided
  int64_t count = 0;  // values, each layer's own
  // Patterns (graph/types/layer_names.h): all of kKeeps, else the first few and how many more.
  std::vector<std::string> names;
  int64_t more = 0;
};

// `sharded` is what Shard made of `training` with `strategy`, and `record` what it wrote down.
// Counts every parameter, its gradient and states, and every result with dims of forward and
// backward once for each axis but the pipeline's; a cut goes back to the row that Shard's decisions
// began with. Sorted by axis and kind.
std::vector<AxisUse> AxisUsesOf(const Graph& training, const Sharded& sharded,
                                const Strategy& strategy, const ShardRecord& record);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_SHARD_AXIS_USES_H_
