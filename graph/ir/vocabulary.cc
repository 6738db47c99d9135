#include "graph/ir/vocabulary.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir/op.h"
#include "graph/ir/step_names.h"

namespace mgc {
namespace {

bool IsLookup(const OpDef& op) {
  return op.offset_factors.size() == 1 && op.offset_factors[0] != "..." &&
         !op.index_operands.empty();
}

// `is_data`: by value, the inputs whose indices are followed.
int64_t FewestEntries(const Graph& logical, std::vector<bool> is_data) {
  const auto data = [&](ValueId id) -> std::vector<bool>::reference {
    return is_data[static_cast<size_t>(id)];
  };
  int64_t fewest = 0;
  for (const Node& node : logical.nodes()) {
    const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(), data);
    if (!reads) continue;
    for (ValueId id : node.outputs) data(id) = logical.type(id).dtype == DType::kI64;
    if (!IsLookup(*node.op)) continue;
    const bool looks_up =
        std::any_of(node.op->index_operands.begin(), node.op->index_operands.end(),
                    [&](int i) { return data(node.inputs[static_cast<size_t>(i)]); });
    if (!looks_up) continue;
    const FactorRule rule = RuleOf(logical, node);
    const int64_t entries =
        rule.factors[static_cast<size_t>(rule.Find(node.op->offset_factors[0]))].size;
    fewest = fewest == 0 ? entries : std::min(fewest, entries);
  }
  return fewest;
}

bool IsIndices(const Graph& logical, const GraphInput& input) {
  return input.kind == InputKind::kData && logical.type(input.value).dtype == DType::kI64;
}

}  // namespace

int64_t VocabularyOf(const Graph& logical) {
  const auto is_text = [&](const GraphInput& input) {
    const std::string& name = logical.value(input.value).name;
    return IsIndices(logical, input) && (name == kTokensInput || name == kTargetsInput);
  };
  const bool some_text = std::any_of(logical.inputs().begin(), logical.inputs().end(), is_text);
  std::vector<bool> is_data(logical.values().size(), false);
  for (const GraphInput& input : logical.inputs()) {
    is_data[static_cast<size_t>(input.value)] =
        some_text ? is_text(input) : IsIndices(logical, input);
  }
  return FewestEntries(logical, std::move(is_data));
}

int64_t VocabularyOf(const Graph& logical, absl::string_view input) {
  const ValueId value = logical.FindValue(input);
  const GraphInput* found = value == kNone ? nullptr : logical.FindInput(value);
  if (found == nullptr || !IsIndices(logical, *found)) return 0;
  std::vector<bool> is_data(logical.values().size(), false);
  is_data[static_cast<size_t>(value)] = true;
  return FewestEntries(logical, std::move(is_data));
}

absl::optional<int64_t> IgnoredIndexOf(const Graph& logical, absl::string_view input) {
  const ValueId value = logical.FindValue(input);
  for (const Node& node : logical.nodes()) {
    if (std::count(node.inputs.begin(), node.inputs.end(), value) == 0) continue;
    if (node.attrs.Find("ignore") != nullptr) return node.attrs.Int("ignore");
  }
  return absl::nullopt;
}

}  // namespace mgc
