#include "passes/graph/gradient_flow.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"
#include "graph/ir/op.h"
#include "graph/ir/step_names.h"

namespace mgc {
namespace {

size_t Index(ValueId id) { return static_cast<size_t>(id); }

bool IsNeeded(const Node& node, const GradientFlow& flow) {
  return std::any_of(node.outputs.begin(), node.outputs.end(),
                     [&](ValueId id) { return flow.Needed(id); });
}

// Calls `fn` with each operand whose numbers the node reads.
template <class Fn>
void ForEachRead(const Node& node, const Fn& fn) {
  const std::vector<int>& types_only = node.op->type_operands;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const bool is_read =
        std::find(types_only.begin(), types_only.end(), static_cast<int>(i)) == types_only.end();
    if (is_read) fn(node.inputs[i]);
  }
}

// Lists what drops a gradient.
class DroppedGradients {
 public:
  explicit DroppedGradients(const Graph& model) : model_(model), flow_(model) {}

  absl::Status Check() {
    for (const Node& node : model_.nodes()) {
      CheckResults(node);
      CheckOperands(node);
    }
    return violations_.ToStatus();
  }

 private:
  // No gradient enters through what a node keeps for its own, nor through ops that have none.
  void CheckResults(const Node& node) {
    const size_t saved = static_cast<size_t>(node.op->saved_results);
    const size_t entered = node.op->grad ? node.outputs.size() - saved : 0;
    for (size_t r = entered; r < node.outputs.size(); ++r) {
      if (!flow_.Moved(node.outputs[r]) || !flow_.Needed(node.outputs[r])) continue;
      Add(node, node.outputs[r],
          absl::StrCat(
              "no gradient flows through ",
              node.op->grad ? absl::StrCat("this result of ", node.op->name) : node.op->name,
              ", and a loss depends on it"));
    }
  }

  // What CheckResults names already is not named again.
  void CheckOperands(const Node& node) {
    if (!IsNeeded(node, flow_)) return;
    for (int i : node.op->stopped_operands) {
      const ValueId operand = node.inputs[static_cast<size_t>(i)];
      if (!flow_.Moved(operand) || named_.count(operand) > 0) continue;
      Add(node, operand,
          absl::StrCat("no gradient of ", node.op->name, " reaches its operand ",
                       node.op->operands[static_cast<size_t>(i)]));
    }
  }

  void Add(const Node& node, ValueId value, const std::string& text) {
    const std::string at = model_.LocText(node.loc);
    named_.insert(value);
    violations_.Add(
        "differentiate_c7",
        absl::StrCat(at, at.empty() ? "" : ": ", "%", EscapeBytes(model_.value(value).name)),
        absl::StrCat(text, "; read it through stop_gradient if it is a constant to ",
                     "the loss, or one that log_shift adds again"));
  }

  const Graph& model_;
  const GradientFlow flow_;
  std::set<ValueId> named_;
  Diagnostics violations_;
};

}  // namespace

GradientFlow::GradientFlow(const Graph& model)
    : moved_(model.values().size()), needed_(model.values().size()) {
  FindMoved(model);
  FindNeeded(model);
}

void GradientFlow::FindMoved(const Graph& model) {
  for (const GraphInput& input : model.inputs()) {
    moved_[Index(input.value)] = input.kind == InputKind::kParam && IsTrained(input.attrs);
  }
  for (const Node& node : model.nodes()) {
    if (StopsGradient(node)) continue;
    bool any = false;
    ForEachRead(node, [&](ValueId operand) { any = any || Moved(operand); });
    for (ValueId id : node.outputs) moved_[Index(id)] = any && model.type(id).dtype != DType::kI64;
  }
}

void GradientFlow::FindNeeded(const Graph& model) {
  for (const GraphOutput& output : model.outputs()) {
    if (output.kind == OutputKind::kLoss) needed_[Index(output.value)] = true;
  }
  for (size_t n = model.nodes().size(); n-- > 0;) {
    const Node& node = model.nodes()[n];
    if (StopsGradient(node) || !IsNeeded(node, *this)) continue;
    ForEachRead(node, [&](ValueId operand) { needed_[Index(operand)] = true; });
  }
}

absl::Status CheckGradientFlow(const Graph& model) { return DroppedGradients(model).Check(); }

}  // namespace mgc
