// What a step of a plan computes.

#ifndef MGC_TOOLS_VIEWS_STEP_WORK_H_
#define MGC_TOOLS_VIEWS_STEP_WORK_H_

#include "graph/plan/plan.h"

namespace mgc {

// Of all ranks together, by the costs that the plan was made with (passes/plan/time/cost.h); what
// is recomputed and what several ranks compute alike counts as often as it is done.
struct PlanWork {
  double flops = 0;           // of a training step
  double device_seconds = 0;  // that as much takes at the peak rate of each op's element type
};

PlanWork WorkOf(const Plan& plan);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_STEP_WORK_H_
