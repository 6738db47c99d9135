// What a rank uses of its memory along a step.

#ifndef MGC_TOOLS_VIEWS_MEMORY_OVER_TIME_H_
#define MGC_TOOLS_VIEWS_MEMORY_OVER_TIME_H_

#include <cstdint>
#include <vector>

#include "graph/plan/plan.h"
#include "passes/plan/time/simulated_step.h"

namespace mgc {

// From `begin_ns` until the next sample begins. Parameters, gradients, optimizer state, copies and
// boundaries are in use all the time, as many bytes as the class' MemoryUse says.
struct MemorySample {
  int64_t begin_ns = 0;
  int64_t activations = 0;  // frames from the begin of a forward to the end of its backward
  int64_t transient = 0;    // values of the step, and of the action's greediest segment
};

// The samples of a class, the first at 0; `step` is PredictStep's of the plan. Never more than the
// regions that MemoryUse counts.
std::vector<MemorySample> MemoryOverTime(const Plan& plan, const PlanClass& plan_class,
                                         const SimulatedStep& step);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_MEMORY_OVER_TIME_H_
