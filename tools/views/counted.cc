#include "tools/views/counted.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/ir/op.h"
#include "graph/ir/step_names.h"
#include "passes/graph/resize.h"

namespace mgc {
namespace {

// kNone for a graph that reports none.
ValueId CountOf(const Graph& model) {
  for (const GraphOutput& output : model.outputs()) {
    if (output.kind == OutputKind::kReport && output.name == kCountReport) return output.value;
  }
  return kNone;
}

// The data whose elements a value adds up, or kNone.
ValueId DataBehind(const Graph& model, ValueId value) {
  while (value != kNone && model.value(value).producer != kNone) {
    const Node& node = model.node(model.value(value).producer);
    value = node.inputs.size() == 1 ? node.inputs[0] : kNone;
  }
  const GraphInput* input = value == kNone ? nullptr : model.FindInput(value);
  return input != nullptr && input->kind == InputKind::kData ? value : kNone;
}

}  // namespace

std::string CountedUnit(const Graph& model) {
  const ValueId data = DataBehind(model, CountOf(model));
  if (data != kNone) {
    const std::vector<Dim>& dims = model.type(data).dims;
    if (dims.size() == 1) return "samples";
    if (dims.size() == 2 && dims[1].name == TokensOf(model).name) return "tokens";
  }
  return "counts";
}

std::string CountedText(const Graph& model) {
  const ValueId count = CountOf(model);
  if (count == kNone || model.value(count).producer == kNone) return CountedUnit(model);
  const Node& node = model.node(model.value(count).producer);
  const std::string operands =
      absl::StrJoin(node.inputs, ", ", [&](std::string* out, ValueId operand) {
        absl::StrAppend(out, "%", EscapeBytes(model.value(operand).name), " ",
                        EscapeBytes(model.type(operand).ToString()));
      });
  return absl::StrCat(CountedUnit(model), ": %", EscapeBytes(model.value(count).name), " = ",
                      node.op->name, "(", operands, ")");
}

}  // namespace mgc
