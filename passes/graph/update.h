// The update of a training step (passes/graph/differentiate.h).

#ifndef MGC_PASSES_GRAPH_UPDATE_H_
#define MGC_PASSES_GRAPH_UPDATE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "graph/ir/graph.h"
#include "passes/graph/backward.h"
#include "passes/graph/optimizer_steps.h"
#include "passes/graph/step_terms.h"

namespace mgc {

// Appends accumulators and the update.
class Update {
 public:
  // `builder` outlives this.
  explicit Update(GraphBuilder* builder) : builder_(builder), steps_(builder) {
    update_.phase = Phase::kUpdate;
  }

  // Sums losses and tokens over the step, in one vector, and reports means.
  void ReportLoss(const StepTerms& terms);

  // Behind ReportLoss: sums the gradients that `backward` has collected, and steps every parameter
  // that is trained. Sums stay sums in memory: one number for all parameters, the product of what
  // makes them means and of what clips them, is the optimizer's to multiply by. InvalidArgument
  // where there is none, or one that no loss depends on: differentiate_c2, differentiate_c4.
  absl::Status StepParameters(Backward* backward);

 private:
  absl::Status CheckTrained(const std::vector<ValueId>& params,
                            const std::vector<ValueId>& gradients) const;
  void Report(const std::string& name, ValueId value);
  void Assign(ValueId target, ValueId value);
  ValueId AccumulateAt(const std::string& name, ValueId term, const std::string& of, Node like);
  ValueId Accumulate(const std::string& name, ValueId term, const std::string& of);
  ValueId Resolved(ValueId value, const std::string& label);
  ValueId Entry(ValueId vector, int64_t i, const std::string& name);
  int HomeLayer(ValueId param) const;
  ValueId GradientSum(ValueId param);
  ValueId Norm();
  GraphBuilder* builder_;
  Backward* backward_ = nullptr;
  Node update_;  // phase and origin of update nodes
  OptimizerSteps steps_;
  std::vector<ValueId> squares_;  // of the parameters' gradients, in order of parameters
  ValueId tokens_ = kNone;        // of the step
  ValueId factor_ = kNone;        // of sums of gradients: makes them means
};

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_UPDATE_H_
