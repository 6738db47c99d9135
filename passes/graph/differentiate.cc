#include "passes/graph/differentiate.h"

#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/ir/results.h"
#include "passes/graph/backward.h"
#include "passes/graph/gradient_flow.h"
#include "passes/graph/rewrite.h"
#include "passes/graph/step_terms.h"
#include "passes/graph/update.h"

namespace mgc {
absl::StatusOr<Graph> Differentiate(const Graph& logical) {
  MGC_RETURN_IF_ERROR(CheckInputs(logical));
  MGC_RETURN_IF_ERROR(CheckGradientFlow(logical));
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
  const std::vector<const GraphOutput*> results = ResultsOf(logical);
  std::vector<GraphOutput> assigned;
  for (GraphOutput output : logical.outputs()) {
    if (output.kind != OutputKind::kAssign) continue;
    output.value = rewriter.Mapped(output.value);
    output.target = rewriter.Mapped(output.target);
    assigned.push_back(std::move(output));
  }
  std::vector<ValueId> made;
  for (const GraphOutput* result : results) made.push_back(rewriter.Mapped(result->value));
  GraphBuilder builder(std::move(rewriter).Finish());
  builder.ClearOutputs();
  WidenTerms(&builder, &terms);
  Update(&builder).ReportLoss(terms);
  for (size_t i = 0; i < results.size() && IsAsked(logical); ++i) {
    builder.AddOutput({made[i], OutputKind::kReport, results[i]->name, kNone, 1.0});
  }
  for (const GraphOutput& output : assigned) builder.AddOutput(output);
  return std::move(builder).Finish();
}

}  // namespace mgc
