// Executes the instruction lists of a shrunk plan on all its ranks, over pairs of residues.

#ifndef MGC_GRAPH_VERIFY_MEANING_RUN_PLAN_H_
#define MGC_GRAPH_VERIFY_MEANING_RUN_PLAN_H_

#include <cstdint>

#include "graph/base/diagnostic.h"
#include "graph/plan/plan.h"
#include "graph/verify/meaning/reference.h"
#include "graph/verify/meaning/step_inputs.h"

namespace mgc {

struct RunCounts {
  int64_t calls = 0;  // of keyed functions
  int64_t zero_denominators = 0;
};

// What a run is about. `real` is the plan at its own sizes (rooms of parameters), `small` what is
// executed, perhaps on fewer axes; both have the same layers, blocks, classes and addresses.
struct PlanRun {
  const Plan& real;
  const Plan& small;
  const StepInputs& inputs;
  const StepReference& expected;
  uint64_t key = 0;
  bool eval = false;
  // Compares every value of the forward pass that the model names, and every value of the backward
  // pass with `expected.backward`, to find where a difference begins; else only maxima (a wrong
  // maximum cancels out of a softmax) and results.
  bool localize = false;
};

// Runs one step and compares what it leaves with `expected`. The first finding ends the run:
//   meaning_v1  the lists stop before their end
//   meaning_v2  reads memory that was not written or has been overwritten
//   meaning_v3  reads a value under another sharding than it was written with
//   meaning_v4  a result differs: loss, tokens, gradient norm, gradient, parameter, moment
//   meaning_v6  a value of the forward pass or a maximum differs from the model's; the backward
//               pass computes what a single device does not
RunCounts RunPlan(const PlanRun& run, Diagnostics* findings);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_MEANING_RUN_PLAN_H_
