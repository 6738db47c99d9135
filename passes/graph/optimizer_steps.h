// The optimizers' part of a training step (passes/graph/update.h).

#ifndef MGC_PASSES_GRAPH_OPTIMIZER_STEPS_H_
#define MGC_PASSES_GRAPH_OPTIMIZER_STEPS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ir/optimizers.h"

namespace mgc {

// Appends to a training graph what the optimizers of its parameters (graph/ir/optimizers.h) are
// given, keep and compute.
class OptimizerSteps {
 public:
  // `builder` outlives this.
  explicit OptimizerSteps(GraphBuilder* builder) : builder_(*builder) {}

  // The inputs of the step: all scalars that its optimizers take.
  void AddScalars();

  // Rates and decays of parameters that take a multiple of the step's, each factor once. `clip`:
  // what gradients are multiplied by. `like`: phase of the update.
  void AddNumbers(ValueId clip, Node like);

  // Behind both. Steps a parameter by its sum of gradients, laid out as its states are.
  void Step(ValueId param, ValueId gradient);

 private:
  ValueId NumberFor(const std::string& scalar, const Attrs& of_param) const;
  std::vector<ValueId> Run(absl::string_view name, std::vector<ValueId> tensors,
                           const Attrs& of_param, const Node& like,
                           const std::vector<std::string>& results);
  void Assign(ValueId target, ValueId value);

  GraphBuilder& builder_;
  std::map<std::pair<std::string, double>, ValueId> scaled_;  // by scalar and factor
  ValueId clip_ = kNone;
};

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_OPTIMIZER_STEPS_H_
