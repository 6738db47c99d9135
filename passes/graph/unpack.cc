#include "passes/graph/unpack.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/ir/retype.h"
#include "passes/graph/packed_dims.h"
#include "passes/graph/rewrite.h"

namespace mgc {
namespace {

constexpr size_t kMostShown = 4;  // of the parameters, in the note

// The type of a part of a value.
TensorType PartType(TensorType type, int dim, const DimPart& part) {
  type.dims[static_cast<size_t>(dim)].size = part.end - part.begin;
  return type;
}

class Unpacking {
 public:
  explicit Unpacking(const Graph& model)
      : model_(model), packed_(model), made_(model, model.level(), Rewriter::Inputs::kNone) {
    for (const GraphInput& input : model.inputs()) {
      if (input.kind == InputKind::kParam) TakeApart(input.value);
    }
  }

  bool FindsAny() const { return !apart_.empty(); }

  absl::StatusOr<Graph> Run() {
    for (const GraphInput& input : model_.inputs()) AddInput(input);
    for (size_t n = 0; n < model_.nodes().size(); ++n) {
      MGC_RETURN_IF_ERROR(AddNode(static_cast<NodeId>(n)));
    }
    return std::move(made_).Finish();
  }

  // What was unpacked, with the numbers of parts.
  std::string Note() const {
    const size_t shown = std::min(unpacked_.size(), kMostShown);
    std::string text = "parameters that are read in parts become these, `NAME.0` and on: ";
    absl::StrAppend(&text, absl::StrJoin(unpacked_.begin(),
                                         unpacked_.begin() + static_cast<int64_t>(shown), ", "));
    if (shown < unpacked_.size()) {
      absl::StrAppend(&text, " and ", unpacked_.size() - shown, " more");
    }
    return text;
  }

 private:
  // A value that is made in parts along `dim`; but of a parameter, by `flow` from what its node
  // reads in parts.
  struct Apart {
    int dim = 0;
    PackedDims::Flow flow = {};
    std::vector<ValueId> parts = {};  // in the new graph
  };

  const std::vector<DimPart>& PartsOf(ValueId value) const {
    return packed_.PartsOf(value, apart_.at(value).dim);
  }

  // By the first dim that is packed, unless that needs a value in parts of two dims at once.
  void TakeApart(ValueId param) {
    for (int d = 0; d < model_.type(param).ndim(); ++d) {
      if (packed_.PartsOf(param, d).empty()) continue;
      std::map<ValueId, Apart> found;
      if (!Follow(param, d, &found)) continue;
      apart_.merge(found);
      return;
    }
  }

  // Finds what is made in parts where a parameter is. False where something would have to be in
  // parts of two dims.
  bool Follow(ValueId param, int dim, std::map<ValueId, Apart>* found) const {
    std::vector<std::pair<ValueId, Apart>> open = {{param, Apart{dim}}};
    while (!open.empty()) {
      const auto [value, apart] = open.back();
      open.pop_back();
      const auto before = apart_.find(value);
      if (before != apart_.end() && before->second.dim != apart.dim) return false;
      const auto [known, is_new] = found->try_emplace(value, apart);
      if (known->second.dim != apart.dim) return false;
      if (is_new) AddReaders(value, apart.dim, &open);
    }
    return true;
  }

  // What nodes make of a value that is in parts, but those that take one.
  void AddReaders(ValueId value, int dim, std::vector<std::pair<ValueId, Apart>>* open) const {
    for (NodeId user : packed_.UsersOf(value)) {
      if (packed_.IsPartAlong(user, dim)) continue;
      const Node& node = model_.node(user);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] != value) continue;
        const PackedDims::Flow flow = *packed_.FlowOf(user, i, dim);
        open->emplace_back(node.outputs[0], Apart{flow.result_dim, flow});
      }
    }
  }

  // `wanted`, or with underscores behind it what no value of the model is called.
  std::string FreeName(std::string wanted) const {
    while (model_.FindValue(wanted) != kNone) wanted += "_";
    return wanted;
  }

  void AddInput(const GraphInput& input) {
    const auto apart = apart_.find(input.value);
    if (apart == apart_.end()) return made_.CopyInput(input);
    const Value& value = model_.value(input.value);
    std::vector<ValueId>& parts = apart->second.parts;
    for (const DimPart& part : PartsOf(input.value)) {
      parts.push_back(made_.builder().AddInput(
          FreeName(absl::StrCat(value.name, ".", parts.size())),
          PartType(value.type, apart->second.dim, part), input.kind, input.attrs));
    }
    unpacked_.push_back(absl::StrCat("%", EscapeBytes(value.name), " (", parts.size(), ")"));
  }

  absl::Status AddNode(NodeId id) {
    const Node& node = model_.node(id);
    if (node.op->Has(OpRole::kRange)) {
      const auto of = apart_.find(node.inputs[0]);
      if (of != apart_.end() && packed_.IsPartAlong(id, of->second.dim)) {
        return TakePart(node, of->second);
      }
    }
    const auto apart = apart_.find(node.outputs.empty() ? kNone : node.outputs[0]);
    if (apart != apart_.end()) return AddParts(id, &apart->second);
    made_.Copy(node);
    return absl::OkStatus();
  }

  // A part of a value that is made in parts.
  absl::Status TakePart(const Node& node, const Apart& of) {
    const std::vector<DimPart>& parts = PartsOf(node.inputs[0]);
    const DimPart taken = {node.attrs.Int(kBeginAttr), node.attrs.Int(kEndAttr)};
    const auto at = std::find(parts.begin(), parts.end(), taken) - parts.begin();
    made_.Map(node.outputs[0], of.parts[static_cast<size_t>(at)]);
    return absl::OkStatus();
  }

  // The node once for each part of its result, of parts of those operands that have the dim.
  absl::Status AddParts(NodeId id, Apart* apart) {
    const Node& node = model_.node(id);
    const Value& result = model_.value(node.outputs[0]);
    const std::vector<DimPart>& parts = PartsOf(node.outputs[0]);
    for (size_t p = 0; p < parts.size(); ++p) {
      std::vector<ValueId> inputs;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        MGC_ASSIGN_OR_RETURN(const ValueId input, OperandPart(id, i, apart->flow, parts[p], p));
        inputs.push_back(input);
      }
      const TensorType type = PartType(result.type, apart->dim, parts[p]);
      const TensorType* types[] = {&type};
      MGC_ASSIGN_OR_RETURN(const std::vector<ValueId> made,
                           made_.builder().Append(node.op->name, std::move(inputs),
                                                  RetypedAttrs(*node.op, node.attrs, types), node,
                                                  {FreeName(absl::StrCat(result.name, ".", p))}));
      apart->parts.push_back(made[0]);
    }
    return absl::OkStatus();
  }

  // What part `p` of the result reads of an operand: its part `p`, a range of it, or all of it.
  absl::StatusOr<ValueId> OperandPart(NodeId id, size_t operand, const PackedDims::Flow& flow,
                                      const DimPart& part, size_t p) {
    const Node& node = model_.node(id);
    const ValueId value = node.inputs[operand];
    const PackedDims::Led led = packed_.LedBy(id, operand, flow.factor);
    const auto apart = apart_.find(value);
    if (apart != apart_.end()) return apart->second.parts[p];
    if (led.dim < 0) return made_.Mapped(value);
    const Attrs range = {{kDimAttr, int64_t{led.dim}},
                         {kBeginAttr, part.begin / flow.result_scale * led.scale},
                         {kEndAttr, part.end / flow.result_scale * led.scale}};
    MGC_ASSIGN_OR_RETURN(
        const std::vector<ValueId> made,
        made_.builder().Append("slice", {made_.Mapped(value)}, range, node,
                               {FreeName(absl::StrCat(model_.value(value).name, ".", p))}));
    return made[0];
  }

  const Graph& model_;
  const PackedDims packed_;
  Rewriter made_;
  std::map<ValueId, Apart> apart_;
  std::vector<std::string> unpacked_;
};

}  // namespace

Graph Unpack(Graph logical, std::vector<std::string>* notes) {
  const auto takes_part = [](const Node& node) { return node.op->Has(OpRole::kRange); };
  if (std::none_of(logical.nodes().begin(), logical.nodes().end(), takes_part)) return logical;
  Unpacking unpacking(logical);
  if (!unpacking.FindsAny()) return logical;
  absl::StatusOr<Graph> unpacked = unpacking.Run();
  if (!unpacked.ok()) {
    notes->push_back(
        absl::StrCat("parameters that are read in parts stay whole, for an op refuses ",
                     "its parts: ", unpacked.status().message()));
    return logical;
  }
  notes->push_back(unpacking.Note());
  return *std::move(unpacked);
}

}  // namespace mgc
