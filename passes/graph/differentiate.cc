#include "passes/graph/differentiate.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/ir/step_names.h"
#include "passes/graph/backward.h"
#include "passes/graph/rewrite.h"
#include "passes/graph/step_terms.h"
#include "passes/graph/update.h"

namespace mgc {
namespace {

template <class T>
bool Contains(const std::vector<T>& list, T item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// Whether the node says that its result is a constant: stop_gradient.
bool StopsGradient(const Node& node) {
  return !node.op->grad && node.op->identity && node.op->identity(node.attrs);
}

// Values that a loss depends on, that parameters move, and through which the ops' rules bring no
// gradient (differentiate_c7).
//
//   %top = reduce_max(%logits)           no gradient flows through a maximum:
//   %z = exp_sum(%logits, %top)          refused
//   %shift = stop_gradient(%top)         said, and then so meant
//   %z = exp_sum(%logits, %shift)
class DroppedGradients {
 public:
  explicit DroppedGradients(const Graph& graph)
      : graph_(graph), moved_(graph.values().size()), needed_(graph.values().size()) {
    FindMoved();
    FindNeeded();
  }

  absl::Status Check() {
    for (const Node& node : graph_.nodes()) {
      CheckResults(node);
      CheckOperands(node);
    }
    return violations_.ToStatus();
  }

 private:
  static size_t Index(ValueId id) { return static_cast<size_t>(id); }

  // Calls `fn` with the place of each operand whose numbers the node reads.
  template <class Fn>
  static void ForEachRead(const Node& node, const Fn& fn) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!Contains(node.op->type_operands, static_cast<int>(i))) fn(i);
    }
  }

  // Real values that parameters move, if stop_gradient does not keep them from it.
  void FindMoved() {
    for (const GraphInput& input : graph_.inputs()) {
      moved_[Index(input.value)] = input.kind == InputKind::kParam && IsTrained(input.attrs);
    }
    for (const Node& node : graph_.nodes()) {
      if (StopsGradient(node)) continue;
      bool any = false;
      ForEachRead(node, [&](size_t i) { any = any || moved_[Index(node.inputs[i])]; });
      for (ValueId id : node.outputs) {
        moved_[Index(id)] = any && graph_.type(id).dtype != DType::kI64;
      }
    }
  }

  // Values that a loss would have a gradient of, if every op had one.
  void FindNeeded() {
    for (const GraphOutput& output : graph_.outputs()) {
      if (output.kind == OutputKind::kLoss) needed_[Index(output.value)] = true;
    }
    for (size_t n = graph_.nodes().size(); n-- > 0;) {
      const Node& node = graph_.nodes()[n];
      if (StopsGradient(node) || !IsNeeded(node)) continue;
      ForEachRead(node, [&](size_t i) { needed_[Index(node.inputs[i])] = true; });
    }
  }

  bool IsNeeded(const Node& node) const {
    return std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId id) { return needed_[Index(id)]; });
  }

  // No gradient enters through what a node keeps for its own, nor through ops that have none.
  void CheckResults(const Node& node) {
    const size_t entered = node.op->grad ? node.outputs.size() - Saved(node) : 0;
    for (size_t r = entered; r < node.outputs.size(); ++r) {
      const size_t id = Index(node.outputs[r]);
      if (!needed_[id] || !moved_[id]) continue;
      moved_[id] = false;  // said once
      Add(node, node.outputs[r],
          absl::StrCat(
              "no gradient flows through ",
              node.op->grad ? absl::StrCat("this result of ", node.op->name) : node.op->name,
              ", and a loss depends on it"));
    }
  }

  static size_t Saved(const Node& node) { return static_cast<size_t>(node.op->saved_results); }

  void CheckOperands(const Node& node) {
    if (!IsNeeded(node)) return;
    for (int i : node.op->stopped_operands) {
      const ValueId operand = node.inputs[static_cast<size_t>(i)];
      if (!moved_[Index(operand)]) continue;
      Add(node, operand,
          absl::StrCat("no gradient of ", node.op->name, " reaches its operand ",
                       node.op->operands[static_cast<size_t>(i)]));
    }
  }

  void Add(const Node& node, ValueId value, const std::string& text) {
    const std::string at = graph_.LocText(node.loc);
    violations_.Add(
        "differentiate_c7",
        absl::StrCat(at, at.empty() ? "" : ": ", "%", EscapeBytes(graph_.value(value).name)),
        absl::StrCat(text, "; read it through stop_gradient if it is a constant to ",
                     "the loss, or one that log_shift adds again"));
  }

  const Graph& graph_;
  std::vector<bool> moved_;   // by value
  std::vector<bool> needed_;  // by value
  Diagnostics violations_;
};

}  // namespace

absl::StatusOr<Graph> Differentiate(const Graph& logical) {
  MGC_RETURN_IF_ERROR(CheckInputs(logical));
  MGC_RETURN_IF_ERROR(DroppedGradients(logical).Check());
  MGC_ASSIGN_OR_RETURN(StepTerms terms, FindTerms(logical));
  GraphBuilder builder(logical);
  builder.set_level(Level::kTraining);
  WidenTerms(&builder, &terms);
  Backward backward(&builder);
  MGC_RETURN_IF_ERROR(backward.Run(terms));
  builder.ClearOutputs();
  Update update(&builder);
  update.ReportLoss(terms);
  MGC_RETURN_IF_ERROR(update.StepParameters(&backward));
  Rewriter named(builder.graph(), Level::kTraining);
  backward.NameGradients(&named);
  for (const Node& node : builder.graph().nodes()) named.Copy(node);
  return std::move(named).Finish();
}

absl::StatusOr<Graph> Evaluation(const Graph& logical) {
  MGC_ASSIGN_OR_RETURN(StepTerms terms, FindTerms(logical));
  Rewriter rewriter(logical, Level::kTraining);
  for (const Node& node : logical.nodes()) {
    Node kept = node;
    const bool random = node.op->Has(OpRole::kRandom);
    if (random) kept.attrs.Set(kDropAttr, 0.0);
    if (random && node.op->identity && node.op->identity(kept.attrs)) {
      rewriter.Map(node.outputs[0], rewriter.Mapped(node.inputs[0]));
    } else {
      rewriter.Copy(kept);
    }
  }
  for (LossTerm& loss : terms.losses) loss.value = rewriter.Mapped(loss.value);
  terms.count = rewriter.Mapped(terms.count);
  GraphBuilder builder(std::move(rewriter).Finish());
  builder.ClearOutputs();
  WidenTerms(&builder, &terms);
  Update(&builder).ReportLoss(terms);
  return std::move(builder).Finish();
}

}  // namespace mgc
