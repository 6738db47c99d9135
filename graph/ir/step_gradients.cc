#include "graph/ir/step_gradients.h"

#include <algorithm>

#include "graph/ir/op.h"

namespace mgc {

absl::flat_hash_map<ValueId, ValueId> GradientsOf(const Graph& step) {
  absl::flat_hash_map<ValueId, ValueId> gradients;
  for (const Node& node : step.nodes()) {
    if (node.phase != Phase::kUpdate) continue;
    const std::vector<std::string>& operands = node.op->operands;
    const auto gradient = std::find(operands.begin(), operands.end(), "grad");
    if (gradient == operands.end()) continue;
    gradients[node.inputs[0]] = node.inputs[static_cast<size_t>(gradient - operands.begin())];
  }
  return gradients;
}

}  // namespace mgc
