#include "passes/graph/freeze_unused.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/ir/step_names.h"
#include "passes/graph/gradient_flow.h"
#include "passes/graph/rewrite.h"

namespace mgc {

Graph FreezeUnused(Graph logical, std::vector<std::string>* notes) {
  const GradientFlow flow(logical);
  const auto is_unused = [&flow](ValueId id) { return flow.Moved(id) && !flow.Needed(id); };
  std::vector<std::string> unused;
  bool any_used = false;
  for (const GraphInput& input : logical.inputs()) {
    if (flow.Moved(input.value) && flow.Needed(input.value)) any_used = true;
    if (!is_unused(input.value)) continue;
    unused.push_back(absl::StrCat("%", EscapeBytes(logical.value(input.value).name)));
  }
  if (unused.empty() || !any_used) return logical;
  Rewriter rewriter(logical, logical.level(), Rewriter::Inputs::kNone);
  for (GraphInput input : logical.inputs()) {
    if (is_unused(input.value)) input.attrs.Set(kTrainAttr, int64_t{0});
    rewriter.CopyInput(input);
  }
  notes->push_back(absl::StrCat("no loss has a gradient of ", absl::StrJoin(unused, ", "),
                                ": kept as they are, like those with `train=0`"));
  for (const Node& node : logical.nodes()) rewriter.Copy(node);
  return std::move(rewriter).Finish();
}

}  // namespace mgc
