#include "passes/graph/shard/value_uses.h"

#include <algorithm>
#include <numeric>

#include "graph/ir/op.h"
#include "graph/ir/step_vector.h"

namespace mgc {

ValueUses::ValueUses(const Graph& graph)
    : graph_(graph),
      users_(graph.Users()),
      is_weight_(graph.values().size(), false),
      is_collected_(graph.values().size(), false),
      gradient_of_(graph.values().size(), kNone),
      assigned_to_(graph.values().size(), kNone),
      states_(graph.values().size()) {
  FindWeights();
  FindGradients();
  FindCollected();
  for (const GraphInput& input : graph.inputs()) {
    const ValueId of = graph.FindValue(input.attrs.Text("of"));
    if (input.kind == InputKind::kState && of != kNone) states_[Index(of)].push_back(input.value);
  }
  for (const GraphOutput& output : graph.outputs()) {
    if (output.kind == OutputKind::kAssign) assigned_to_[Index(output.value)] = output.target;
  }
}

void ValueUses::FindWeights() {
  for (const GraphInput& input : graph_.inputs()) {
    is_weight_[Index(input.value)] = input.kind == InputKind::kParam;
  }
  for (const Node& node : graph_.nodes()) {
    const bool linear = node.op->linearity != Linearity::kNone && !node.op->Has(OpRole::kReshard);
    if (node.phase == Phase::kUpdate || !linear || node.inputs.empty()) continue;
    const bool of_weights = std::all_of(node.inputs.begin(), node.inputs.end(),
                                        [&](ValueId id) { return IsWeight(id); });
    for (ValueId id : node.outputs) is_weight_[Index(id)] = of_weights;
  }
}

void ValueUses::FindGradients() {
  for (const GraphInput& input : graph_.inputs()) {
    const ValueId of = graph_.FindValue(input.attrs.Text("of"));
    // A loss' sum is of a report, which may have the name of any value.
    const bool of_param = of != kNone && IsWeight(of) && graph_.value(of).producer == kNone;
    if (input.kind != InputKind::kAccumulator || !of_param) continue;
    for (NodeId user : users_[Index(input.value)]) {
      const Node& node = graph_.node(user);
      if (node.op->Has(OpRole::kCollect)) gradient_of_[Index(node.inputs[1])] = of;
    }
  }
  for (const Node& node : graph_.nodes()) {
    if (node.phase != Phase::kBackward) continue;
    for (ValueId id : node.outputs) {
      const ValueId primal = graph_.value(id).primal;
      const bool made = primal != kNone && graph_.value(primal).producer != kNone;
      if (made && IsWeight(primal)) gradient_of_[Index(id)] = primal;
    }
  }
}

// From the last node to the first: what sums and linear ops of one operand take into accumulators
// of gradients.
void ValueUses::FindCollected() {
  const std::vector<Node>& nodes = graph_.nodes();
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (node->phase != Phase::kBackward) continue;
    for (ValueId id : node->outputs) {
      const std::vector<NodeId>& users = users_[Index(id)];
      is_collected_[Index(id)] =
          !users.empty() && std::all_of(users.begin(), users.end(), [&](NodeId user) {
            const Node& next = graph_.node(user);
            if (next.op->Has(OpRole::kCollect)) return true;
            const bool carries = next.op->linearity == Linearity::kJoint ||
                                 (next.inputs.size() == 1 && CarriesOwed(next, 0));
            return carries && next.outputs.size() == 1 && is_collected_[Index(next.outputs[0])];
          });
    }
  }
}

// Whether the node moves all elements of its one operand and changes none.
bool ValueUses::OnlyMoves(const Node& node) const {
  if (node.inputs.size() != 1 || node.outputs.size() != 1) return false;
  const bool moves = node.op->linearity == Linearity::kSeparate && node.op->flops_per_point == 0;
  return moves &&
         graph_.type(node.inputs[0]).NumElements() == graph_.type(node.outputs[0]).NumElements();
}

std::vector<size_t> ValueUses::ClaimOrder(const Node& node) const {
  std::vector<size_t> order(node.inputs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_partition(order.begin(), order.end(),
                        [&](size_t i) { return IsWeight(node.inputs[i]); });
  return order;
}

bool ValueUses::StaysOwed(ValueId id) const {
  const std::vector<NodeId>& users = users_[Index(id)];
  if (is_collected_[Index(id)]) return true;
  if (users.empty()) return false;
  const NodeId producer = graph_.value(id).producer;
  for (NodeId user : users) {
    const Node& node = graph_.node(user);
    const OpDef& op = *node.op;
    const bool collects = op.Has(OpRole::kCollect) || PacksStepVector(node);
    // Between layers a pipeline may be cut, and what is sent there is whole.
    const bool same_layer = producer != kNone && (node.phase == Phase::kUpdate ||
                                                  graph_.node(producer).layer == node.layer);
    const bool moves = op.Has(OpRole::kReshard) || OnlyMoves(node);
    const bool passes_on = op.Has(OpRole::kSum) || (same_layer && moves) || ConvertsLoss(node);
    if (!collects && !(users.size() == 1 && passes_on)) return false;
  }
  return true;
}

// A loss term on its way to its sum: a scalar, of one other.
bool ValueUses::ConvertsLoss(const Node& node) const {
  return node.phase == Phase::kForward && node.inputs.size() == 1 && CarriesOwed(node, 0) &&
         graph_.type(node.inputs[0]).ndim() == 0 && graph_.type(node.outputs[0]).ndim() == 0 &&
         StaysOwed(node.outputs[0]);
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
    if (IsWeight(other) && WeightAt(other, known).SplitAxes().Contains(axis)) return false;
  }
  return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId result) {
    return gradient_of_[Index(result)] != kNone || MayPush(result, axis, known);
  });
}

// Where a weight is, laid out already or not: backward makes some of it, a rounded copy, behind the
// values that ask. Its ops keep dims apart.
Sharding ValueUses::WeightAt(ValueId id, const KnownSharding& known) const {
  if (const Sharding* sharding = known(id)) return *sharding;
  const Node& node = graph_.node(graph_.value(id).producer);
  const FactorRule rule = RuleOf(graph_, node);
  Sharding made = Sharding::Whole(graph_.type(id).ndim());
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Sharding operand = WeightAt(node.inputs[i], known);
    for (size_t d = 0; d < operand.dims.size(); ++d) {
      for (size_t to = 0; to < made.dims.size(); ++to) {
        if (rule.results[0][to] == rule.operands[i][d]) made.dims[to] = operand.dims[d];
      }
    }
  }
  return made;
}

// Whether a value, laid out already or not, owes a sum over the axis: a weight cut over it is
// contracted, or an operand's sum is carried on.
bool ValueUses::WillOwe(ValueId id, AxisId axis, const KnownSharding& known) const {
  if (const Sharding* sharding = known(id)) return sharding->sum.Contains(axis);
  const NodeId producer = graph_.value(id).producer;
  if (producer == kNone) return false;
  const Node& node = graph_.node(producer);
  const FactorRule rule = RuleOf(graph_, node);
  bool carried = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!IsWeight(node.inputs[i])) {
      carried = carried ||
                (CarriesOwed(node, static_cast<int>(i)) && WillOwe(node.inputs[i], axis, known));
      continue;
    }
    const Sharding sharding = WeightAt(node.inputs[i], known);
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
