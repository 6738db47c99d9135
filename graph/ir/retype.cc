#include "graph/ir/retype.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

std::vector<const TensorType*> TypesOf(const std::vector<TensorType>& types) {
  std::vector<const TensorType*> pointers;
  pointers.reserve(types.size());
  for (const TensorType& type : types) pointers.push_back(&type);
  return pointers;
}

}  // namespace

Attrs RetypedAttrs(const OpDef& op, const Attrs& attrs,
                   absl::Span<const TensorType* const> results) {
  return op.resized ? op.resized(attrs, results) : attrs;
}

absl::Status CheckMakes(const OpDef& op, const OpUse& use) {
  MGC_ASSIGN_OR_RETURN(const std::vector<TensorType> made, InferTypes(op, use.attrs, use.operands));
  bool equal = made.size() == use.results.size();
  for (size_t r = 0; equal && r < made.size(); ++r) {
    equal = SizesOf(made[r]) == SizesOf(*use.results[r]);
  }
  if (!equal) return absl::InvalidArgumentError(absl::StrCat(op.name, " makes other sizes"));
  return RuleOf(op, use).status();
}

absl::StatusOr<Graph> Retype(const Graph& graph,
                             const std::function<TensorType(ValueId)>& type_of) {
  GraphBuilder builder(graph.name(), graph.level());
  builder.set_num_layers(graph.num_layers());
  for (const std::string& file : graph.files()) builder.AddFile(file);
  std::vector<ValueId> made(graph.values().size(), kNone);
  const auto now = [&](ValueId old) { return made[static_cast<size_t>(old)]; };
  for (const GraphInput& input : graph.inputs()) {
    made[static_cast<size_t>(input.value)] = builder.AddInput(
        graph.value(input.value).name, type_of(input.value), input.kind, input.attrs);
  }
  for (const Node& node : graph.nodes()) {
    Node copy = node;
    std::vector<TensorType> operands;
    for (ValueId& id : copy.inputs) {
      operands.push_back(type_of(id));
      id = now(id);
    }
    std::vector<TensorType> types;
    std::vector<Value> results;
    for (ValueId id : node.outputs) {
      types.push_back(type_of(id));
      results.push_back(graph.value(id));
      results.back().type = types.back();
      results.back().sharding.reset();
      if (results.back().primal != kNone) results.back().primal = now(results.back().primal);
    }
    copy.attrs = RetypedAttrs(*node.op, node.attrs, TypesOf(types));
    MGC_RETURN_IF_ERROR(
        Annotate(CheckMakes(*node.op, OpUse{copy.attrs, TypesOf(operands), TypesOf(types)}),
                 results.empty() ? "" : absl::StrCat("%", results[0].name)));
    const NodeId appended = builder.AppendRaw(std::move(copy), std::move(results));
    for (size_t r = 0; r < node.outputs.size(); ++r) {
      made[static_cast<size_t>(node.outputs[r])] = builder.graph().node(appended).outputs[r];
    }
  }
  for (GraphOutput output : graph.outputs()) {
    output.value = now(output.value);
    if (output.target != kNone) output.target = now(output.target);
    builder.AddOutput(std::move(output));
  }
  return std::move(builder).Finish();
}

}  // namespace mgc
