// The backward pass of a training step (passes/graph/differentiate.h).

#ifndef MGC_PASSES_GRAPH_BACKWARD_H_
#define MGC_PASSES_GRAPH_BACKWARD_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "graph/ir/graph.h"
#include "graph/ir/op.h"
#include "passes/graph/gradient_flow.h"
#include "passes/graph/rewrite.h"
#include "passes/graph/step_terms.h"

namespace mgc {

// Appends backward: walks the forward nodes in reverse and collects contributions per value. What
// only parameters that are not trained lead to has no gradient.
class Backward : public GradContext {
 public:
  // `builder` has the forward nodes, which CheckGradientFlow lets pass; it outlives this.
  explicit Backward(GraphBuilder* builder);

  // An error of a gradient rule says of which op.
  absl::Status Run(const StepTerms& terms);

  // A contribution to a value's gradient, and the place of the use.
  struct Use {
    ValueId gradient;
    Node like;
  };
  // One contribution for every layer that uses a value, in order of use: what one layer contributes
  // is added there, in the place of its first use, the last that backward comes to.
  std::vector<Use> SumsByLayer(ValueId primal);

  // Names gradients after their primals, now that all uses are known: `%x.grad`, or `%x.grad.1`,
  // `%x.grad.2` in order of use where several are added. What a rule makes on the way keeps the
  // name of the gradient it starts from, and its op's: `%y.grad.mul`.
  void NameGradients(Rewriter* rewriter) const;

  const Attrs& attrs() const override { return node_->attrs; }
  int num_inputs() const override { return static_cast<int>(node_->inputs.size()); }
  ValueId input(int i) const override { return node_->inputs[static_cast<size_t>(i)]; }
  ValueId output(int i) const override { return node_->outputs[static_cast<size_t>(i)]; }
  ValueId output_grad(int i) const override { return output_grads_[static_cast<size_t>(i)]; }
  const TensorType& type(ValueId value) const override { return builder_->graph().type(value); }
  bool wants(int i) const override { return flow_.Moved(input(i)); }
  std::vector<ValueId> EmitAll(absl::string_view op, std::vector<ValueId> inputs,
                               Attrs attrs) override;
  void Add(int i, ValueId gradient) override;

 private:
  static size_t Index(ValueId id) { return static_cast<size_t>(id); }
  std::string GradientName(ValueId primal) const;
  std::vector<Use> UsesOf(ValueId primal) const;  // in order of use
  void Seed(const LossTerm& loss);
  ValueId Sum(ValueId id);
  ValueId Added(ValueId primal, const std::vector<Use>& uses, const Node& like,
                absl::string_view part);
  absl::Status Visit(const Node& node);

  GraphBuilder* builder_;
  const GradientFlow flow_;              // of the forward graph
  std::vector<std::vector<Use>> grads_;  // by value of it
  const Node* node_ = nullptr;           // being visited
  Node place_;                           // where its gradient nodes go
  std::vector<ValueId> output_grads_;
};

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_BACKWARD_H_
