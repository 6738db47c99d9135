// How long a plan's training step takes as the plan stands: its own lists in their own order,
// timed.
//
// The walker of graph/plan goes through the lists; a clock goes along. An instruction takes what
// passes/plan/time/cost.h says, a queue runs one thing after another, and a transfer occupies both
// ends. Two rules are the machine's, not the plan's, and bind where they do not stop it:
//
//   a receive is posted at most one action ahead of its consumer
//   a stage alone on its rank, with two outboxes towards a neighbour full, waits for one
//
// A collective that joins classes is timed by each class for itself. So the prediction of a plan
// that nobody has edited is the one that its order was made from (passes/plan/order.h), to the
// nanosecond; or a little less where layers gather for themselves: the simulation of order may hold
// a gather back for a transfer that then comes late, and lists do not.

#ifndef MGC_PASSES_PLAN_TIME_PREDICT_STEP_H_
#define MGC_PASSES_PLAN_TIME_PREDICT_STEP_H_

#include "absl/status/statusor.h"
#include "graph/plan/plan.h"
#include "passes/plan/time/simulated_step.h"

namespace mgc {

// Spans of a queue are in the order in which they happen. The plan has passed
// graph/plan/plan_check.h. FailedPrecondition when the step never ends, with what each queue waits
// for [order_v4], or takes centuries [S4].
absl::StatusOr<SimulatedStep> PredictStep(const Plan& plan);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_TIME_PREDICT_STEP_H_
