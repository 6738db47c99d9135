// Where gradients have to flow in a model.
//
// One sweep down finds what trained parameters move, one up what a loss depends on; stop_gradient
// ends both. What is moved and needed has a gradient, if the ops' rules bring it there.

#ifndef MGC_PASSES_GRAPH_GRADIENT_FLOW_H_
#define MGC_PASSES_GRAPH_GRADIENT_FLOW_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "graph/ir/graph.h"

namespace mgc {

class GradientFlow {
 public:
  // Of a forward graph. Outlives it.
  explicit GradientFlow(const Graph& model);

  // Whether a value is real and its numbers follow from those of a trained parameter.
  bool Moved(ValueId value) const { return moved_[static_cast<size_t>(value)]; }
  // Whether a loss depends on the numbers of a value.
  bool Needed(ValueId value) const { return needed_[static_cast<size_t>(value)]; }

 private:
  void FindMoved(const Graph& model);
  void FindNeeded(const Graph& model);

  std::vector<bool> moved_;   // by value
  std::vector<bool> needed_;  // by value
};

// InvalidArgument with all values that are moved and needed and through which the ops' rules bring
// no gradient (differentiate_c7): it would be left out in silence.
//
//   %top = reduce_max(%logits)           no gradient flows through a maximum:
//   %z = exp_sum(%logits, %top)          refused
//   %shift = stop_gradient(%top)         said, and then so meant
//   %z = exp_sum(%logits, %shift)
absl::Status CheckGradientFlow(const Graph& model);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_GRADIENT_FLOW_H_
