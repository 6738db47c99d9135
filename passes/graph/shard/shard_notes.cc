#include "passes/graph/shard/shard_notes.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace mgc {

void ShardNotes::Made(const Node& node, size_t r, const Sharding& produced, const FactorRule& rule,
                      const Claims& claims, const std::vector<AxisSet>& carries) {
  if (record_ == nullptr) return;
  const ValueId value = node.outputs[r];
  for (size_t d = 0; d < produced.dims.size(); ++d) {
    for (int f : rule.results[r][d]) {
      for (AxisId axis : claims.axes()[static_cast<size_t>(f)]) {
        record_->decisions.push_back(
            {value, axis, static_cast<int>(d), ShardRule::kClaim, claims.HolderOf(f, axis)});
      }
    }
  }
  for (const TakenClaim& taken : claims.taken()) {
    if (!produced.Owed().Contains(taken.axis)) continue;
    record_->decisions.push_back({value, taken.axis, -1, ShardRule::kContracts, taken.who});
  }
  for (size_t i = 0; i < carries.size(); ++i) {
    for (AxisId axis : carries[i]) {
      record_->decisions.push_back({value, axis, -1, ShardRule::kCarries, node.inputs[i]});
    }
  }
}

void ShardNotes::Refused(const Node& node, const Claims& claims) {
  if (record_ == nullptr) return;
  const auto number = static_cast<NodeId>(&node - source_.nodes().data());
  for (const RefusedClaim& refused : claims.refused()) {
    const bool operand =
        std::find(node.inputs.begin(), node.inputs.end(), refused.who) != node.inputs.end();
    if (operand) record_->refusals.push_back({number, refused.who, refused});
  }
}

void ShardNotes::Added(ValueId sum, const Sharding& produced, const std::vector<ValueId>& terms,
                       const std::function<Sharding(ValueId)>& home) {
  if (record_ == nullptr) return;
  for (size_t d = 0; d < produced.dims.size(); ++d) {
    for (AxisId axis : produced.dims[d]) {
      record_->decisions.push_back({sum, axis, static_cast<int>(d), ShardRule::kAdds, terms[0]});
    }
  }
  for (AxisId axis : produced.sum) {
    const auto owes = std::find_if(terms.begin(), terms.end(),
                                   [&](ValueId term) { return home(term).sum.Contains(axis); });
    if (owes != terms.end()) {
      record_->decisions.push_back({sum, axis, -1, ShardRule::kAdds, *owes});
    }
  }
}

void ShardNotes::Pinned(const Node& node, const Sharding& target) {
  if (record_ == nullptr) return;
  const std::string place = source_.LocText(node.loc);
  const size_t first = record_->decisions.size();
  All(node.outputs[0], target, ShardRule::kPin, kNone);
  for (size_t i = first; i < record_->decisions.size(); ++i) {
    record_->decisions[i].said =
        absl::StrCat("pin ", node.attrs.Text("sharding"), place.empty() ? "" : " at ", place);
  }
}

void ShardNotes::All(ValueId value, const Sharding& sharding, ShardRule rule, ValueId by) {
  if (record_ == nullptr) return;
  for (size_t d = 0; d < sharding.dims.size(); ++d) {
    for (AxisId axis : sharding.dims[d]) {
      record_->decisions.push_back({value, axis, static_cast<int>(d), rule, by});
    }
  }
  for (AxisId axis : sharding.UsedAxes() - sharding.SplitAxes()) {
    record_->decisions.push_back({value, axis, -1, rule, by});
  }
}

void ShardNotes::Like(const std::vector<ValueId>& values, const Sharding& sharding, ValueId param) {
  for (ValueId value : values) All(value, sharding, ShardRule::kLike, param);
}

}  // namespace mgc
