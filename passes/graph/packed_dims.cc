#include "passes/graph/packed_dims.h"

#include <algorithm>

#include "graph/ir/op.h"

namespace mgc {
namespace {

constexpr char kEveryFactor[] = "...";

// Whether the op's meaning needs the place of a factor's elements in the whole dim.
bool NeedsPlace(const OpDef& op, const Factor& factor) {
  return std::any_of(
      op.offset_factors.begin(), op.offset_factors.end(),
      [&](const std::string& name) { return name == kEveryFactor || name == factor.name; });
}

bool IsPartition(const std::vector<DimPart>& parts, int64_t size) {
  int64_t end = 0;
  for (const DimPart& part : parts) {
    if (part.begin != end) return false;
    end = part.end;
  }
  return parts.size() > 1 && end == size;
}

}  // namespace

PackedDims::PackedDims(const Graph& model)
    : model_(model),
      users_(model.Users()),
      is_output_(model.values().size(), false),
      parts_(model.values().size()) {
  for (const Node& node : model.nodes()) rules_.push_back(RuleOf(model, node));
  for (const GraphOutput& output : model.outputs()) {
    is_output_[static_cast<size_t>(output.value)] = true;
  }
  // What reads a value makes later ones.
  for (size_t v = parts_.size(); v-- > 0;) {
    const ValueId value = static_cast<ValueId>(v);
    for (int d = 0; d < model.type(value).ndim(); ++d) parts_[v].push_back(FindParts(value, d));
  }
}

std::vector<DimPart> PackedDims::FindParts(ValueId value, int dim) const {
  const Dim& whole = model_.type(value).dims[static_cast<size_t>(dim)];
  if (whole.multiple != 1 || is_output_[static_cast<size_t>(value)]) return {};
  std::vector<DimPart> parts;
  for (NodeId user : UsersOf(value)) {
    const std::vector<ValueId>& inputs = model_.node(user).inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == value && !AddParts(user, i, dim, &parts)) return {};
    }
  }
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  if (!IsPartition(parts, whole.size)) return {};
  return parts;
}

bool PackedDims::IsPartAlong(NodeId node, int dim) const {
  const Node& reader = model_.node(node);
  return reader.op->Has(OpRole::kRange) && reader.attrs.Int(kDimAttr) == dim;
}

// Adds what a node takes of an operand; false where it takes no parts.
bool PackedDims::AddParts(NodeId node, size_t operand, int dim, std::vector<DimPart>* parts) const {
  const Node& reader = model_.node(node);
  if (IsPartAlong(node, dim)) {
    parts->push_back({reader.attrs.Int(kBeginAttr), reader.attrs.Int(kEndAttr)});
    return true;
  }
  const absl::optional<Flow> flow = FlowOf(node, operand, dim);
  if (!flow.has_value()) return false;
  const std::vector<DimPart>& of_result = PartsOf(reader.outputs[0], flow->result_dim);
  for (const DimPart& part : of_result) {
    if (part.begin % flow->result_scale != 0 || part.end % flow->result_scale != 0) return false;
    parts->push_back({part.begin / flow->result_scale * flow->scale,
                      part.end / flow->result_scale * flow->scale});
  }
  return !of_result.empty();
}

// Elements of a dim for one step of its first factor.
int64_t PackedDims::Scale(NodeId node, const DimFactors& factors) const {
  const FactorRule& rule = rules_[static_cast<size_t>(node)];
  int64_t scale = 1;
  for (size_t f = 1; f < factors.size(); ++f) {
    scale *= rule.factors[static_cast<size_t>(factors[f])].size;
  }
  return scale;
}

PackedDims::Led PackedDims::LedBy(NodeId node, size_t operand, int factor) const {
  const TensorFactors& dims = rules_[static_cast<size_t>(node)].operands[operand];
  for (size_t d = 0; d < dims.size(); ++d) {
    if (!dims[d].empty() && dims[d][0] == factor)
      return {static_cast<int>(d), Scale(node, dims[d])};
  }
  return {};
}

absl::optional<PackedDims::Flow> PackedDims::FlowOf(NodeId node, size_t operand, int dim) const {
  const Node& reader = model_.node(node);
  const FactorRule& rule = rules_[static_cast<size_t>(node)];
  const DimFactors& factors = rule.operands[operand][static_cast<size_t>(dim)];
  if (reader.outputs.size() != 1 || factors.empty()) return absl::nullopt;
  const int factor = factors[0];
  const Factor& led = rule.factors[static_cast<size_t>(factor)];
  if (led.whole || led.maximum || NeedsPlace(*reader.op, led)) return absl::nullopt;
  // Behind another factor its steps would be no run of a dim.
  const auto lies_behind = [factor](const TensorFactors& dims) {
    return std::any_of(dims.begin(), dims.end(), [factor](const DimFactors& of_dim) {
      return std::find(of_dim.begin(), of_dim.end(), factor) > of_dim.begin() &&
             std::find(of_dim.begin(), of_dim.end(), factor) != of_dim.end();
    });
  };
  if (std::any_of(rule.operands.begin(), rule.operands.end(), lies_behind)) return absl::nullopt;
  if (lies_behind(rule.results[0])) return absl::nullopt;
  for (size_t d = 0; d < rule.results[0].size(); ++d) {
    const DimFactors& of_result = rule.results[0][d];
    if (of_result.empty() || of_result[0] != factor) continue;
    return Flow{factor, static_cast<int>(d), Scale(node, factors), Scale(node, of_result)};
  }
  return absl::nullopt;
}

}  // namespace mgc
