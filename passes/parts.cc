#include "passes/parts.h"

#include "graph/collective.h"
#include "graph/op.h"

namespace mgc {

Parts::Parts(const Graph& graph)
    : graph_(graph),
      users_(graph.Users()),
      parts_(graph.nodes().size()),
      param_of_(graph.values().size(), kNone),
      home_layer_(graph.values().size(), kNoLayer),
      tied_(graph.values().size(), false),
      is_gradient_(graph.values().size(), false),
      is_accumulator_(graph.values().size(), false),
      root_(graph.values().size(), kNone) {
  FindHomes();
  FindChains();
  Number();
}

void Parts::FindHomes() {
  for (const GraphInput& input : graph_.inputs()) {
    if (input.kind == InputKind::kParam) param_of_[Index(input.value)] = input.value;
  }
  for (const GraphInput& input : graph_.inputs()) {
    const size_t id = Index(input.value);
    is_accumulator_[id] = input.kind == InputKind::kAccumulator;
    const ValueId of = graph_.FindValue(input.attrs.Text("of"));
    if (of != kNone) param_of_[id] = param_of_[Index(of)];
    for (NodeId user : users_[id]) {
      const Node& node = graph_.node(user);
      if (node.phase == Phase::kUpdate) continue;
      if (home_layer_[id] == kNoLayer) home_layer_[id] = node.layer;
      tied_[id] = tied_[id] || (input.kind == InputKind::kParam && node.layer != home_layer_[id]);
    }
  }
}

void Parts::FindChains() {
  for (const GraphOutput& output : graph_.outputs()) {
    if (output.kind != OutputKind::kAssign || !is_accumulator_[Index(output.target)]) continue;
    const size_t out = Index(output.value);
    root_[out] = output.target;
    param_of_[out] = param_of_[Index(output.target)];
    is_gradient_[out] = param_of_[out] != kNone;
  }
  for (const Node& node : graph_.nodes()) {
    const std::string& op = node.op->name;
    if (node.phase != Phase::kUpdate) continue;
    for (ValueId out : node.outputs) {
      const ValueId first = node.inputs.empty() ? kNone : node.inputs[0];
      if (first == kNone || node.layer == kNoLayer) continue;
      param_of_[Index(out)] = param_of_[Index(first)];
      const bool chain = op == "add" || op == "mul" || node.op->collective;
      is_gradient_[Index(out)] = is_gradient_[Index(first)] && chain && graph_.type(out).ndim() > 0;
      if (is_gradient_[Index(out)] && MayTakePlace(*node.op, 0, 0)) root_[Index(out)] = first;
    }
  }
  for (const GraphOutput& output : graph_.outputs()) {
    if (output.kind != OutputKind::kAssign) continue;
    if (root_[Index(output.value)] == kNone) root_[Index(output.value)] = output.target;
  }
}

bool Parts::IsFirstReduction(const Node& node) const {
  if (node.phase != Phase::kUpdate || !node.op->collective || node.layer == kNoLayer) return false;
  const ValueId operand = node.inputs[0];
  const NodeId producer = graph_.value(operand).producer;
  if (producer == kNone || graph_.node(producer).phase == Phase::kUpdate) return false;
  const ValueId param = param_of_[Index(operand)];
  return param != kNone && !tied_[Index(param)] && CollectiveOf(graph_, node).MovesData();
}

void Parts::Number() {
  int number = 0;
  bool last_global = false;
  for (size_t n = 0; n < parts_.size(); ++n) {
    const Node& node = graph_.nodes()[n];
    parts_[n] = {node.phase, 0, node.layer};
    if (node.phase != Phase::kUpdate) continue;
    const bool global = node.layer == kNoLayer;
    if (global != last_global) ++number;
    last_global = global;
    parts_[n].number = IsFirstReduction(node) ? kReducePart : number;
  }
  num_update_parts_ = number + 1;
}

ValueId Parts::RootOf(ValueId id) const {
  while (root_[Index(id)] != kNone) id = root_[Index(id)];
  return id;
}

}  // namespace mgc
