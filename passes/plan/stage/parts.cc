#include "passes/plan/stage/parts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/ir/collective.h"
#include "graph/ir/op.h"
#include "graph/ir/step_vector.h"
#include "passes/plan/stage/shared_sums.h"

namespace mgc {

std::string NameOfLayer(int layer, int num_layers) {
  if (layer == kEmbeddingLayer) return "the embedding";
  return layer == num_layers ? "the head" : absl::StrCat("layer ", layer);
}

Parts::Parts(const Graph& graph)
    : graph_(graph),
      users_(graph.Users()),
      parts_(graph.nodes().size()),
      is_norm_share_(graph.nodes().size(), false),
      param_of_(graph.values().size(), kNone),
      home_layer_(graph.values().size(), kNoLayer),
      tied_(graph.values().size(), false),
      is_gradient_(graph.values().size(), false),
      is_accumulator_(graph.values().size(), false),
      is_term_(graph.values().size(), false),
      root_(graph.values().size(), kNone) {
  FindHomes();
  FindChains();
  FindNormShares();
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
    home_layer_[id] = static_cast<int>(input.attrs.Int(kGivenToAttr, kNoLayer));
    is_gradient_[id] = is_accumulator_[id] && param_of_[id] != kNone;
    for (NodeId user : users_[id]) {
      const Node& node = graph_.node(user);
      if (node.phase == Phase::kUpdate) continue;
      if (home_layer_[id] == kNoLayer) home_layer_[id] = node.layer;
      tied_[id] = tied_[id] || (input.kind == InputKind::kParam && node.layer != home_layer_[id]);
    }
  }
  KeepUnread();
}

// A parameter that nothing reads is kept beside the first that something reads.
void Parts::KeepUnread() {
  int home = kNoLayer;
  for (const GraphInput& input : graph_.inputs()) {
    if (input.kind != InputKind::kParam) continue;
    if (home == kNoLayer) home = home_layer_[Index(input.value)];
  }
  for (const GraphInput& input : graph_.inputs()) {
    int& of_param = home_layer_[Index(input.value)];
    if (input.kind == InputKind::kParam && of_param == kNoLayer) of_param = home;
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
    if (node.phase != Phase::kUpdate || node.layer == kNoLayer || node.inputs.empty()) continue;
    for (size_t r = 0; r < node.outputs.size(); ++r) {
      param_of_[Index(node.outputs[r])] = param_of_[Index(node.inputs[0])];
      FindChain(node, r);
    }
    for (const ValueId id : node.inputs) {
      const ValueId root = RootOf(id);
      if (node.op->Has(OpRole::kSum) && IsAccumulated(id)) is_term_[Index(root)] = true;
    }
  }
  for (const GraphOutput& output : graph_.outputs()) {
    if (output.kind != OutputKind::kAssign) continue;
    if (root_[Index(output.value)] == kNone) root_[Index(output.value)] = output.target;
  }
}

// A gradient stays one through sums, products, casts and collectives, and keeps its place where the
// op lets its result take it.
void Parts::FindChain(const Node& node, size_t result) {
  const bool moves = node.op->collective || node.op->Has(OpRole::kCast);
  const int operand = moves ? 0 : OperandInPlace(*node.op, static_cast<int>(result));
  if (operand < 0) return;
  const ValueId in = node.inputs[static_cast<size_t>(operand)];
  const ValueId out = node.outputs[result];
  const bool same_rank = graph_.type(out).ndim() == graph_.type(in).ndim();
  is_gradient_[Index(out)] = is_gradient_[Index(in)] && same_rank;
  if (!is_gradient_[Index(out)]) return;
  if (MayTakePlace(*node.op, result, static_cast<size_t>(operand))) root_[Index(out)] = in;
  if (node.op->Has(OpRole::kCast)) root_[Index(out)] = RoundedFrom(in, out);
}

// Of a gradient that is widened again the sum of which `narrow` is what is left, in whose place it
// goes on; kNone where it has another type or is another piece.
ValueId Parts::RoundedFrom(ValueId narrow, ValueId wide) const {
  for (ValueId id = narrow;;) {
    const NodeId producer = graph_.value(id).producer;
    if (producer == kNone || graph_.node(producer).phase != Phase::kUpdate) return kNone;
    const Node& node = graph_.node(producer);
    id = node.inputs[0];
    if (!node.op->Has(OpRole::kCast)) continue;
    const bool fits = graph_.type(id).dtype == graph_.type(wide).dtype &&
                      graph_.local_shape(id) == graph_.local_shape(wide);
    return fits ? id : kNone;
  }
}

// What only the vector of squares reads, at last.
void Parts::FindNormShares() {
  for (size_t n = graph_.nodes().size(); n-- > 0;) {
    const Node& node = graph_.nodes()[n];
    if (node.phase != Phase::kUpdate || param_of_[Index(node.outputs[0])] == kNone) continue;
    const std::vector<NodeId>& users = users_[Index(node.outputs[0])];
    is_norm_share_[n] = !users.empty() && std::all_of(users.begin(), users.end(), [&](NodeId user) {
      return PacksStepVector(graph_.node(user)) || IsNormShare(user);
    });
  }
}

bool Parts::IsFirstReduction(const Node& node) const {
  if (node.phase != Phase::kUpdate || !node.op->collective || node.layer == kNoLayer) return false;
  ValueId operand = node.inputs[0];
  const NodeId producer = graph_.value(operand).producer;
  if (producer != kNone && graph_.node(producer).op->Has(OpRole::kCast)) {
    operand = graph_.node(producer).inputs[0];
  }
  if (graph_.value(operand).producer == kNone || !IsAccumulated(operand)) return false;
  return !tied_[Index(param_of_[Index(operand)])] && CollectiveOf(graph_, node).MovesData();
}

// A cast stands with the reduction that alone reads it.
bool Parts::StartsReduction(const Node& node) const {
  if (node.phase != Phase::kUpdate || !node.op->Has(OpRole::kCast)) return IsFirstReduction(node);
  const std::vector<NodeId>& users = users_[Index(node.outputs[0])];
  return users.size() == 1 && IsFirstReduction(graph_.node(users[0]));
}

void Parts::Number() {
  int number = 0;
  bool last_global = false;
  for (size_t n = 0; n < parts_.size(); ++n) {
    const Node& node = graph_.nodes()[n];
    parts_[n] = {node.phase, NumberInMicroBatch(node), node.layer};
    if (node.phase != Phase::kUpdate) continue;
    const bool global = node.layer == kNoLayer;
    if (global != last_global) ++number;
    last_global = global;
    parts_[n].number = StartsReduction(node) ? kReducePart : number;
    const ValueId param = node.outputs.empty() ? kNone : ParamOf(node.outputs[0]);
    if (param != kNone && IsTied(param)) tied_layers_.insert(node.layer);
  }
  num_update_parts_ = number + 1;
}

// A cast stands with the sum that alone reads it, or with what collects what it makes of one.
int Parts::NumberInMicroBatch(const Node& node) const {
  if (!IsOfMicroBatch(node.phase)) return 0;
  const auto is_stored = [this](ValueId id) { return !graph_.sharding(id).storage.empty(); };
  const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(), is_stored);
  const bool makes = std::any_of(node.outputs.begin(), node.outputs.end(), is_stored);
  if (node.op->collective && reads != makes) return makes ? kReducePart : kGatherPart;
  const bool casts = node.op->Has(OpRole::kCast);
  if (node.phase == Phase::kBackward && reads && (casts || node.op->Has(OpRole::kCollect))) {
    return kCollectPart;
  }
  const std::vector<NodeId>& users = users_[Index(node.outputs[0])];
  const bool goes = casts && users.size() == 1;
  return goes && NumberInMicroBatch(graph_.node(users[0])) == kReducePart ? kReducePart : 0;
}

// An accumulator, or what it is assigned at the end of a backward.
bool Parts::IsAccumulated(ValueId id) const {
  const NodeId producer = graph_.value(id).producer;
  return is_gradient_[Index(id)] &&
         (producer == kNone || graph_.node(producer).phase != Phase::kUpdate);
}

int Parts::SourceLayer(ValueId id) const {
  for (;;) {
    if (IsAccumulated(id)) return home_layer_[Index(RootOf(id))];
    const NodeId producer = graph_.value(id).producer;
    if (producer == kNone) return kNoLayer;
    const Node& node = graph_.node(producer);
    if (node.phase != Phase::kUpdate || node.op->Has(OpRole::kSum) || node.inputs.empty()) {
      return kNoLayer;
    }
    id = node.inputs[0];
  }
}

ValueId Parts::RootOf(ValueId id) const {
  while (root_[Index(id)] != kNone) id = root_[Index(id)];
  return id;
}

}  // namespace mgc
