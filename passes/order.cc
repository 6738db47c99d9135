#include "passes/order.h"

#include <algorithm>
#include <utility>

#include "graph/base/status.h"
#include "passes/layout.h"
#include "passes/simulate_step.h"

namespace mgc {
namespace {

// The compute list of one class: the schedule's actions, the start of a chunk's gradient reductions
// right after its last backward, the update at the end.
std::vector<Action> ComputeList(const std::vector<ScheduleAction>& actions, int64_t pp,
                                int64_t micro_batches, const std::vector<Chunk>& chunks,
                                bool backward) {
  std::vector<Action> list;
  for (const ScheduleAction& scheduled : actions) {
    const bool forward = scheduled.kind == ScheduleActionKind::kForward;
    if (!forward && !backward) continue;
    Action action;
    action.ref.kind = forward ? ActionKind::kForward : ActionKind::kBackward;
    action.ref.chunk = static_cast<int>(scheduled.stage / pp);
    action.ref.micro_batch = scheduled.micro_batch;
    list.push_back(action);
    const bool last = !forward && scheduled.micro_batch == micro_batches - 1;
    if (!last || chunks[action.ref.chunk].reduce.empty()) continue;
    Action reduce;
    reduce.ref = {ActionKind::kReduceGrad, action.ref.chunk, scheduled.micro_batch};
    list.push_back(reduce);
  }
  Action update;
  update.ref.kind = ActionKind::kUpdate;
  update.waits_for_reductions = backward;
  list.push_back(update);
  return list;
}

// Size of what crosses a cut point, on one rank: every boundary formal's slot has it.
int64_t StreamBytes(const Plan& plan) {
  int64_t bytes = 0;
  for (const PlanClass& c : plan.classes) {
    for (const Chunk& chunk : c.chunks) {
      for (const Call& call : chunk.forward) {
        const Segment& segment = plan.segments[call.segment];
        for (const Slot& slot : segment.slots) {
          const std::string& formal = segment.formals[slot.formal];
          if (formal == "input" || formal == "output") bytes = std::max(bytes, slot.bytes);
        }
      }
    }
  }
  return bytes;
}

}  // namespace

absl::StatusOr<SimulatedStep> Order(const PipelineSchedule& schedule, Plan* plan,
                                    std::vector<int>* pools, bool keep_spans) {
  const int stages = static_cast<int>(schedule.pp * schedule.vp);
  const int64_t stream = StreamBytes(*plan);
  std::vector<SimulatedClass> train;
  std::vector<SimulatedClass> eval;
  for (size_t c = 0; c < plan->classes.size(); ++c) {
    PlanClass& made = plan->classes[c];
    const std::vector<ScheduleAction>& actions = schedule.ranks[c];
    made.train.compute =
        ComputeList(actions, schedule.pp, schedule.micro_batches, made.chunks, true);
    made.eval.compute =
        ComputeList(actions, schedule.pp, schedule.micro_batches, made.eval_chunks, false);
    train.push_back({&made.chunks, &made.update, &made.train});
    eval.push_back({&made.eval_chunks, &made.eval_update, &made.eval});
  }
  StepSimulator evaluation(*plan, std::move(eval), stages, stream, false);
  MGC_RETURN_IF_ERROR(evaluation.Run().status());
  StepSimulator training(*plan, std::move(train), stages, stream, keep_spans);
  MGC_ASSIGN_OR_RETURN(SimulatedStep step, training.Run());
  pools->clear();
  for (size_t c = 0; c < plan->classes.size(); ++c) {
    pools->push_back(std::max(training.pool_size(static_cast<int>(c)),
                              evaluation.pool_size(static_cast<int>(c))));
  }
  return step;
}

}  // namespace mgc
