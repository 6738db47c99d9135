#include "passes/graph/freeze_unused.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/ir/step_names.h"
#include "passes/graph/backward.h"
#include "passes/graph/rewrite.h"
#include "passes/graph/step_terms.h"

namespace mgc {
namespace {

struct Parameters {
  std::set<ValueId> unused;
  bool any_used = false;
};

absl::StatusOr<Parameters> FindUnused(const Graph& logical) {
  MGC_ASSIGN_OR_RETURN(StepTerms terms, FindTerms(logical));
  GraphBuilder builder(logical);
  builder.set_level(Level::kTraining);
  WidenTerms(&builder, &terms);
  Backward backward(&builder);
  MGC_RETURN_IF_ERROR(backward.Run(terms));
  Parameters found;
  for (const GraphInput& input : logical.inputs()) {
    if (input.kind != InputKind::kParam || !IsTrained(input.attrs)) continue;
    if (backward.HasGradient(input.value)) {
      found.any_used = true;
    } else {
      found.unused.insert(input.value);
    }
  }
  return found;
}

}  // namespace

absl::StatusOr<Graph> FreezeUnused(const Graph& logical, std::vector<std::string>* notes) {
  MGC_ASSIGN_OR_RETURN(const Parameters found, FindUnused(logical));
  if (found.unused.empty() || !found.any_used) return logical;
  std::vector<std::string> names;
  for (ValueId param : found.unused) {
    names.push_back(absl::StrCat("%", EscapeBytes(logical.value(param).name)));
  }
  notes->push_back(absl::StrCat("no loss has a gradient of ", absl::StrJoin(names, ", "),
                                ": kept as they are, like those with `train=0`"));
  Rewriter rewriter(logical, logical.level(), Rewriter::Inputs::kNone);
  for (GraphInput input : logical.inputs()) {
    if (found.unused.count(input.value) > 0) input.attrs.Set(kTrainAttr, int64_t{0});
    rewriter.CopyInput(input);
  }
  for (const Node& node : logical.nodes()) rewriter.Copy(node);
  return std::move(rewriter).Finish();
}

}  // namespace mgc
