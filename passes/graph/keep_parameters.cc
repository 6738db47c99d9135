#include "passes/graph/keep_parameters.h"

#include <utility>

#include "graph/ir/step_names.h"
#include "passes/graph/rewrite.h"

namespace mgc {

Graph KeepParameters(const Graph& model) {
  Rewriter rewriter(model, model.level(), Rewriter::Inputs::kNone);
  for (GraphInput input : model.inputs()) {
    if (input.kind == InputKind::kParam) input.attrs.Set(kTrainAttr, int64_t{0});
    rewriter.CopyInput(input);
  }
  for (const Node& node : model.nodes()) rewriter.Copy(node);
  return std::move(rewriter).Finish();
}

}  // namespace mgc
