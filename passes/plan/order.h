// Gives every class its compute list and its communication list.
//
//   class 0: 0F0 0F1 0B0 ...   ->   0F0 output 0, 0F1 output 1, 0B0 wait 0RECV_B0, ...
//                                   0SEND_F0 behind 4 collectives of 0F1, ...
//
// Simulates the machine that will run: one compute and one communication queue per rank (ranks of a
// class alike, so one stands for all), a transfer only when both ends' queues are free, finite
// slots. The order of start times of everything that communicates is one global order; each class
// gets its projection, so that executing the lists cannot deadlock. A receive is posted at most one
// action ahead of its consumer. A stage alone on its rank has two outboxes towards a neighbour and
// waits for one. Inboxes and outboxes come from one pool per class and are assigned along the
// order; every reuse is an explicit wait. Ties are broken by class. Runs after schedule (which
// action before which) and before allocate (which byte).

#ifndef MGC_PASSES_PLAN_ORDER_H_
#define MGC_PASSES_PLAN_ORDER_H_

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "graph/types/machine.h"
#include "passes/plan/forms/plan_forms.h"
#include "passes/plan/schedule.h"
#include "passes/plan/time/simulated_step.h"

namespace mgc {

// What is ordered. A search that only asks how long a step takes leaves out what that does not
// need.
struct OrderScope {
  bool evaluation = true;  // its lists are empty otherwise, and such a plan cannot run
  bool delay_reductions =
      true;  // of two orders the faster; otherwise reductions stay where they are
  // Lists of transfers, and who waits for them. Without, slots are the same, and such a plan cannot
  // run either.
  bool transfers = true;
  // Of a long schedule all rounds. Otherwise those that repeat are counted, not simulated: such a
  // plan takes as long and needs as many bytes, but cannot run either.
  bool all_rounds = true;
};

// Training runs the schedule, evaluation every micro-batch's forward in turn; `machine` says what
// things cost. The simulated training step goes to `step`, with its spans, where that is given.
// `shorter`: the same schedule without rounds that may repeat. It stands for the whole one if they
// do (passes/plan/time/steady_rounds.h). FailedPrecondition: S4, a step of centuries; order_c1, the
// schedule waits for itself.
absl::StatusOr<OrderedPlan> Order(ScheduledPlan scheduled, const Machine& machine,
                                  SimulatedStep* step = nullptr, OrderScope scope = {},
                                  const absl::optional<ShorterSchedule>& shorter = absl::nullopt);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_ORDER_H_
