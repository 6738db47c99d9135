#include "graph/ir/vocabulary.h"

#include <algorithm>
#include <vector>

#include "graph/ir/op.h"

namespace mgc {
namespace {

bool IsLookup(const OpDef& op) {
  return op.offset_factors.size() == 1 && op.offset_factors[0] != "..." &&
         !op.index_operands.empty();
}

}  // namespace

int64_t VocabularyOf(const Graph& logical) {
  std::vector<bool> is_data(logical.values().size(), false);
  const auto data = [&](ValueId id) -> std::vector<bool>::reference {
    return is_data[static_cast<size_t>(id)];
  };
  for (const GraphInput& input : logical.inputs()) {
    data(input.value) =
        input.kind == InputKind::kData && logical.type(input.value).dtype == DType::kI64;
  }
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

}  // namespace mgc
