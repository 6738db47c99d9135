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

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/types/machine.h"
#include "passes/plan/plan_forms.h"

namespace mgc {

// One stretch of the simulated step, for timelines.
struct SimulatedSpan {
  int coordinate = 0;
  bool communication = false;
  std::string name;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

struct SimulatedStep {
  int64_t makespan_ns = 0;
  std::vector<int64_t> busy_ns;      // per class: its compute queue
  std::vector<SimulatedSpan> spans;  // only if asked for
};

// The compute list of one class: the schedule's actions, the start of a chunk's gradient reductions
// right after its last backward, the update at the end; without `backward` forwards and the update.
// Actions are of the class' own stages.
std::vector<OrderedAction> ComputeList(const std::vector<ScheduleAction>& actions,
                                       const std::vector<StagePlace>& stages, int64_t micro_batches,
                                       const std::vector<StagedChunk>& chunks, bool backward);

// Training runs the schedule, evaluation every micro-batch's forward in turn; `machine` says what
// things cost. The simulated training step goes to `step`, with its spans, where that is given.
// FailedPrecondition: S4, a step of centuries; order_c1, the schedule waits for itself.
absl::StatusOr<OrderedPlan> Order(ScheduledPlan scheduled, const Machine& machine,
                                  SimulatedStep* step = nullptr);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_ORDER_H_
