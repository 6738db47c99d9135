#include "passes/graph/shard/homes.h"

#include <algorithm>
#include <string>

#include "graph/ir/op.h"

namespace mgc {

Sharding Homes::OfInput(const GraphInput& input) const {
  Sharding home = strategy_.Seed(source_.type(input.value), NamesOf(source_, input.value));
  NoteRows(input.value, home, /*brought=*/false);
  if (!strategy_.Stores(source_, input)) return home;
  const std::string& name = source_.value(input.value).name;
  const AxisSet pieces = strategy_.StorageOf(name) - home.UsedAxes();
  for (AxisId axis : pieces) home.storage.push_back(axis);
  if (record_ == nullptr) return home;
  const StorageRow* row = strategy_.StorageRowOf(StoredKind::kStates, name);
  for (AxisId axis : pieces) {
    record_->decisions.push_back({input.value, axis, -1, ShardRule::kStore, kNone, row->said});
  }
  return home;
}

Sharding Homes::OfAccumulator(ValueId accumulator, ValueId gradient) const {
  Sharding home = made_.Home(gradient);
  const GraphInput* input = source_.FindInput(accumulator);
  const ValueId param = input == nullptr ? kNone : source_.FindValue(input->attrs.Text("of"));
  if (param == kNone || uses_.StatesOf(param).empty()) return home;
  const Sharding& stored = made_.Home(param);
  const AxisSet pieces = stored.storage.AsSet();
  const std::string& name = source_.value(param).name;
  if (strategy_.StorageRowOf(StoredKind::kGradients, name) == nullptr || pieces.empty() ||
      stored.dims != home.dims || !home.sum.ContainsAll(pieces)) {
    return home;
  }
  home.storage = stored.storage;
  home.sum -= pieces;
  if (record_ == nullptr) return home;
  const StorageRow* row = strategy_.StorageRowOf(StoredKind::kGradients, name);
  for (AxisId axis : pieces) {
    record_->decisions.push_back({accumulator, axis, -1, ShardRule::kStore, kNone, row->said});
  }
  return home;
}

bool Homes::IsGatheredEachTime(ValueId id) const {
  while (source_.value(id).producer != kNone) {
    id = source_.node(source_.value(id).producer).inputs[0];  // a cast
  }
  return strategy_.StorageRowOf(StoredKind::kParameters, source_.value(id).name) != nullptr;
}

std::vector<Sharding> Homes::TargetsOf(const Node& node,
                                       const std::vector<Sharding>& produced) const {
  std::vector<Sharding> targets;
  for (size_t r = 0; r < produced.size(); ++r) {
    targets.push_back(Target(node.outputs[r], produced[r], Kept(node, produced, r)));
  }
  return targets;
}

void Homes::ClaimInOrder(const Node& node, const FactorRule& rule, Claims* claims) const {
  const std::vector<size_t> order = uses_.ClaimOrder(node);
  const auto is_weight = [&](size_t i) { return uses_.IsWeight(node.inputs[i]); };
  const auto others = std::find_if_not(order.begin(), order.end(), is_weight);
  const auto claim = [&](size_t i) {
    claims->Claim(rule.operands[i], made_.Home(node.inputs[i]), node.inputs[i]);
  };
  std::for_each(order.begin(), others, claim);
  for (size_t r = 0; r < node.outputs.size(); ++r) {
    const ValueId weight = uses_.WeightOfGradient(node.outputs[r]);
    if (weight != kNone) claims->ClaimClosed(rule.results[r], made_.Home(weight), weight);
  }
  std::for_each(others, order.end(), claim);
  for (size_t r = 0; r < node.outputs.size(); ++r) {
    const ValueId primal = source_.value(node.outputs[r]).primal;
    if (const absl::optional<Sharding> home = HomeOf(node.outputs[r]); home.has_value()) {
      claims->Claim(rule.results[r], *home, node.outputs[r]);
    } else if (primal != kNone) {
      claims->Claim(rule.results[r], made_.Home(primal), primal);
    }
  }
}

std::vector<AxisSet> Homes::CarriedOf(const Node& node,
                                      const std::vector<ValueId>& operands) const {
  std::vector<AxisSet> carries(operands.size());
  AxisSet all;
  if (node.op->linearity == Linearity::kJoint && uses_.StaysOwed(node.outputs[0])) {
    for (ValueId id : operands) all |= made_.Home(id).sum;
    return std::vector<AxisSet>(operands.size(), all);
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!uses_.CarriesOwed(node, static_cast<int>(i))) continue;
    carries[i] = made_.Home(operands[i]).sum - all;
    all |= carries[i];
  }
  return carries;
}

Sharding Homes::Target(ValueId old, const Sharding& produced, AxisSet kept) const {
  const Value& value = source_.value(old);
  if (const absl::optional<Sharding> home = HomeOf(old); kept.empty() && home.has_value()) {
    NoteRows(old, *home, /*brought=*/true);
    return *home;
  }
  const AxisSet paid = produced.Owed() - kept;
  Sharding target = Paid(produced, paid);
  if (value.primal == kNone) {
    NoteWay(old, produced, target);
    return target;
  }
  const Sharding& primal = made_.Home(value.primal);
  for (size_t d = 0; d < target.dims.size(); ++d) {
    for (int i = 0; i < primal.dims[d].size(); ++i) {
      const AxisId axis = primal.dims[d][i];
      if (paid.Contains(axis) && target.dims[d].size() == i) target.dims[d].push_back(axis);
    }
  }
  NoteWay(old, produced, target);
  return target;
}

void Homes::NoteRows(ValueId value, const Sharding& sharding, bool brought) const {
  if (record_ == nullptr) return;
  const std::vector<SeededDim> seeds =
      strategy_.SeedDims(source_.type(value), NamesOf(source_, value));
  for (size_t d = 0; d < sharding.dims.size(); ++d) {
    for (AxisId axis : sharding.dims[d]) {
      record_->decisions.push_back({value, axis, static_cast<int>(d), ShardRule::kRow, kNone,
                                    seeds[d].said.value_or(""), brought});
    }
  }
}

void Homes::NoteWay(ValueId value, const Sharding& produced, const Sharding& target) const {
  if (record_ == nullptr) return;
  const ValueId primal = source_.value(value).primal;
  for (size_t d = 0; primal != kNone && d < target.dims.size(); ++d) {
    for (AxisId axis : target.dims[d]) {
      if (!made_.Home(primal).dims[d].Contains(axis)) continue;
      record_->decisions.push_back(
          {value, axis, static_cast<int>(d), ShardRule::kLike, primal, "", true});
    }
  }
  for (AxisId axis : produced.Owed() - target.UsedAxes()) {
    record_->decisions.push_back({value, axis, -1, ShardRule::kPaid, kNone, "", true});
  }
}

absl::optional<Sharding> Homes::HomeOf(ValueId result) const {
  return strategy_.HomeOf(source_, result, made_.mesh());
}

AxisSet Homes::Kept(const Node& node, const std::vector<Sharding>& produced, size_t result) const {
  if (uses_.StaysOwed(node.outputs[result])) return produced[result].sum;
  AxisSet kept;
  if (node.phase != Phase::kBackward) return kept;
  const KnownSharding known = [&](ValueId id) -> const Sharding* {
    for (size_t r = 0; r < node.outputs.size(); ++r) {
      if (node.outputs[r] == id) return &produced[r];
    }
    return made_.Mapped(id) == kNone ? nullptr : &made_.Home(id);
  };
  for (AxisId axis : produced[result].sum) {
    if (uses_.MayPush(node.outputs[result], axis, known)) kept.Add(axis);
  }
  return kept;
}

}  // namespace mgc
