// The step on a single device: what a plan must compute.
//
// The logical model is evaluated forward, and differentiated by the ops' own gradient rules, one
// micro-batch after another; the update follows the definition (mean over the global token count,
// clip by the global norm, each parameter's optimizer). Nothing of the compiler takes part.
//
// Of a step that scales its loss gradients are the same: those of the loss times the scale, over
// it. The step is taken where the norm is finite, Adam's corrections are those of the steps taken,
// and scale, counters and steps go on by the rule of next_loss_scale.

#ifndef MGC_GRAPH_VERIFY_MEANING_REFERENCE_H_
#define MGC_GRAPH_VERIFY_MEANING_REFERENCE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/eval/models/residue_model.h"
#include "graph/ir/graph.h"
#include "graph/verify/meaning/backward_values.h"
#include "graph/verify/meaning/step_inputs.h"

namespace mgc {

struct UpdatedParam {
  ResidueTensor gradient;  // summed over the step, times the scale of the loss
  ResidueTensor param;
  std::map<std::string, ResidueTensor> states;  // by name, after the step
};

struct StepReference {
  std::map<std::string, ResiduePair> reports;  // loss, tokens, grad_factor, grad_norm
  std::map<std::string, ResiduePair> eval_reports;
  std::map<std::string, UpdatedParam> params;
  // What a step that scales its loss leaves for the next, by name.
  std::map<std::string, ResiduePair> carried;
  // By micro-batch: every value of the forward pass.
  std::vector<std::map<std::string, ResidueTensor>> values;
  std::vector<std::map<std::string, ResidueTensor>> eval_values;
  // By micro-batch, where they are kept: what the backward pass computes.
  std::vector<BackwardValues> backward;
  // Whether <gradient, tangent> equals the derivative of the loss along a random direction, by dual
  // numbers.
  bool gradients_hold = true;
  int64_t calls = 0;  // of keyed functions
  int64_t zero_denominators = 0;
};

// The name of a parameter's sum of gradients as StepInputs keys it.
std::string StartName(const std::string& param);

// `model` is logical, with a loss and a report `count`; all numbers are those of ResidueModel(key).
// The sums of gradients of the parameters `started` start at their input, others at zero. Values of
// the backward pass are kept on demand: they take several times the room of the forward pass.
struct StepKind {
  int64_t num_micro_batches = 1;
  bool scales_loss = false;
  std::set<std::string> started = {};
  bool keep_backward = false;
};
absl::StatusOr<StepReference> EvaluateStep(const Graph& model, const StepInputs& inputs,
                                           uint64_t key, const StepKind& kind);

// Keys dropout in the reference and in the plan.
inline constexpr uint64_t kStepSeed = 1;

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_MEANING_REFERENCE_H_
