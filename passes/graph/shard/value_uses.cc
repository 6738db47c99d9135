#include "passes/graph/shard/value_uses.h"

#include <algorithm>

#include "graph/ir/op.h"

namespace mgc {

ValueUses::ValueUses(const Graph& graph)
    : graph_(graph),
      users_(graph.Users()),
      is_param_(graph.values().size(), false),
      gradient_of_(graph.values().size(), kNone),
      assigned_to_(graph.values().size(), kNone),
      states_(graph.values().size()) {
  for (const GraphInput& input : graph.inputs()) {
    is_param_[Index(input.value)] = input.kind == InputKind::kParam;
    const ValueId of = graph.FindValue(input.attrs.Text("of"));
    if (input.kind == InputKind::kState && of != kNone) states_[Index(of)].push_back(input.value);
    if (input.kind != InputKind::kAccumulator || of == kNone || !is_param_[Index(of)]) continue;
    for (NodeId user : users_[Index(input.value)]) {
      const Node& node = graph.node(user);
      if (node.op->Has(OpRole::kCollect)) gradient_of_[Index(node.inputs[1])] = of;
    }
  }
  for (const GraphOutput& output : graph.outputs()) {
    if (output.kind == OutputKind::kAssign) assigned_to_[Index(output.value)] = output.target;
  }
}

bool ValueUses::StaysOwed(ValueId id) const {
  const std::vector<NodeId>& users = users_[Index(id)];
  if (users.empty()) return false;
  for (NodeId user : users) {
    const Node& node = graph_.node(user);
    const OpDef& op = *node.op;
    const bool alone = users.size() == 1;
    const bool collects = op.Has(OpRole::kCollect) || op.Has(OpRole::kPack);
    const bool resolves = alone && (op.Has(OpRole::kSum) ||
                                    (op.Has(OpRole::kReshard) && node.phase == Phase::kUpdate));
    if (!collects && !resolves) return false;
  }
  return true;
}

bool ValueUses::CarriesOwed(const Node& node, int i) const {
  if (node.op->linearity == Linearity::kNone) return false;
  if (node.op->linearity == Linearity::kJoint && node.inputs.size() > 1) return false;
  const std::vector<int>& operands = node.op->linear_operands;
  return operands.empty() || std::find(operands.begin(), operands.end(), i) != operands.end();
}

bool ValueUses::MayPush(ValueId id, AxisId axis, const KnownSharding& known) const {
  const std::vector<NodeId>& users = users_[Index(id)];
  return !users.empty() && std::all_of(users.begin(), users.end(), [&](NodeId user) {
    return MayPushInto(graph_.node(user), id, axis, known);
  });
}

bool ValueUses::MayPushInto(const Node& node, ValueId id, AxisId axis,
                            const KnownSharding& known) const {
  if (node.phase != Phase::kBackward) return false;
  if (node.op->Has(OpRole::kCollect) || node.op->Has(OpRole::kReshard)) return true;
  if (node.op->Has(OpRole::kSum)) {
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId other) { return other == id || WillOwe(other, axis, known); });
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId other = node.inputs[i];
    if (other == id && !CarriesOwed(node, static_cast<int>(i))) return false;
    if (is_param_[Index(other)] && known(other)->UsedAxes().Contains(axis)) return false;
  }
  return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId result) {
    return gradient_of_[Index(result)] != kNone || MayPush(result, axis, known);
  });
}

// Whether a value, laid out already or not, owes a sum over the axis: a parameter cut over it is
// contracted, or an operand's sum is carried on.
bool ValueUses::WillOwe(ValueId id, AxisId axis, const KnownSharding& known) const {
  if (const Sharding* sharding = known(id)) return sharding->sum.Contains(axis);
  const NodeId producer = graph_.value(id).producer;
  if (producer == kNone) return false;
  const Node& node = graph_.node(producer);
  const FactorRule rule = RuleOf(graph_, node);
  bool carried = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!is_param_[Index(node.inputs[i])]) {
      carried = carried ||
                (CarriesOwed(node, static_cast<int>(i)) && WillOwe(node.inputs[i], axis, known));
      continue;
    }
    const Sharding& sharding = *known(node.inputs[i]);
    for (size_t d = 0; d < sharding.dims.size(); ++d) {
      if (!sharding.dims[d].Contains(axis)) continue;
      const DimFactors& factors = rule.operands[i][d];
      return std::any_of(factors.begin(), factors.end(),
                         [&](int f) { return !rule.InResult(f, 0); });
    }
  }
  return carried;
}

}  // namespace mgc
