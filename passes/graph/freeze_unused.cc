#include "passes/graph/freeze_unused.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/ir/step_names.h"
#include "passes/graph/gradient_flow.h"
#include "passes/graph/rewrite.h"

namespace mgc {

Graph FreezeUnused(const Graph& logical, std::vector<std::string>* notes) {
  const GradientFlow flow(logical);
  Rewriter rewriter(logical, logical.level(), Rewriter::Inputs::kNone);
  std::vector<std::string> unused;
  bool any_used = false;
  for (GraphInput input : logical.inputs()) {
    if (flow.Moved(input.value) && flow.Needed(input.value)) any_used = true;
    if (flow.Moved(input.value) && !flow.Needed(input.value)) {
      unused.push_back(absl::StrCat("%", EscapeBytes(logical.value(input.value).name)));
      input.attrs.Set(kTrainAttr, int64_t{0});
    }
    rewriter.CopyInput(input);
  }
  if (unused.empty() || !any_used) return logical;
  notes->push_back(absl::StrCat("no loss has a gradient of ", absl::StrJoin(unused, ", "),
                                ": kept as they are, like those with `train=0`"));
  for (const Node& node : logical.nodes()) rewriter.Copy(node);
  return std::move(rewriter).Finish();
}

}  // namespace mgc
