#include "graph/ir/step_gradients.h"

#include <algorithm>

#include "graph/ir/op.h"

namespace mgc {
namespace {

// The parameter that a value is, or is a state of.
ValueId ParamOf(const Graph& step, ValueId id) {
  const GraphInput* input = step.FindInput(id);
  if (input == nullptr) return kNone;
  if (input->kind == InputKind::kParam) return id;
  return input->kind == InputKind::kState ? step.FindValue(input->attrs.Text("of")) : kNone;
}

}  // namespace

absl::flat_hash_map<ValueId, ValueId> GradientsOf(const Graph& step) {
  absl::flat_hash_map<ValueId, ValueId> gradients;
  for (const Node& node : step.nodes()) {
    if (node.phase != Phase::kUpdate) continue;
    const std::vector<std::string>& operands = node.op->operands;
    const auto gradient = std::find(operands.begin(), operands.end(), "grad");
    if (gradient == operands.end()) continue;
    const auto of = std::find_if(node.inputs.begin(), node.inputs.end(),
                                 [&](ValueId id) { return ParamOf(step, id) != kNone; });
    if (of == node.inputs.end()) continue;
    gradients[ParamOf(step, *of)] = node.inputs[static_cast<size_t>(gradient - operands.begin())];
  }
  return gradients;
}

}  // namespace mgc
