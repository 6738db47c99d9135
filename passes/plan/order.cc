#include "passes/plan/order.h"

#include <algorithm>
#include <utility>

#include "graph/base/status.h"
#include "passes/plan/simulate_step.h"

namespace mgc {

std::vector<OrderedAction> ComputeList(const std::vector<ScheduleAction>& actions,
                                       const std::vector<StagePlace>& stages, int64_t micro_batches,
                                       const std::vector<StagedChunk>& chunks, bool backward) {
  std::vector<OrderedAction> list;
  for (const ScheduleAction& scheduled : actions) {
    const bool forward = scheduled.kind == ScheduleActionKind::kForward;
    if (!forward && !backward) continue;
    OrderedAction action;
    action.ref.kind = forward ? ActionKind::kForward : ActionKind::kBackward;
    action.ref.chunk = stages[scheduled.stage].chunk;
    action.ref.micro_batch = scheduled.micro_batch;
    list.push_back(action);
    const bool last = !forward && scheduled.micro_batch == micro_batches - 1;
    if (!last || chunks[action.ref.chunk].reduce.empty()) continue;
    OrderedAction reduce;
    reduce.ref = {ActionKind::kReduceGrad, action.ref.chunk, scheduled.micro_batch};
    list.push_back(reduce);
  }
  OrderedAction update;
  update.ref.kind = ActionKind::kUpdate;
  update.waits_for_reductions = backward;
  list.push_back(update);
  return list;
}

absl::StatusOr<OrderedPlan> Order(ScheduledPlan scheduled, const Machine& machine,
                                  SimulatedStep* step) {
  const PipelineSchedule& schedule = scheduled.schedule;
  OrderedPlan ordered;
  ordered.staged = std::move(scheduled.staged);
  const StagedPlan& staged = ordered.staged;
  ordered.classes.resize(staged.classes.size());
  std::vector<SimulatedClass> train;
  std::vector<SimulatedClass> eval;
  for (size_t c = 0; c < staged.classes.size(); ++c) {
    const StagedClass& from = staged.classes[c];
    OrderedClass& made = ordered.classes[c];
    const std::vector<ScheduleAction>& actions = schedule.ranks[c];
    const auto compute = [&](const StagedStep& of, bool backward) {
      return ComputeList(actions, staged.stages, schedule.micro_batches, of.chunks, backward);
    };
    made.train.compute = compute(from.train, true);
    made.eval.compute = compute(from.eval, false);
    train.push_back({&from.train.chunks, &from.train.update, &made.train});
    eval.push_back({&from.eval.chunks, &from.eval.update, &made.eval});
  }
  const SimulationSpec spec{{staged.mesh, machine},
                            staged.segments,
                            staged.stages,
                            schedule.micro_batches,
                            StreamBytes(staged)};
  StepSimulator evaluation(spec, std::move(eval), false);
  MGC_RETURN_IF_ERROR(evaluation.Run().status());
  StepSimulator training(spec, std::move(train), step != nullptr);
  MGC_ASSIGN_OR_RETURN(SimulatedStep simulated, training.Run());
  for (size_t c = 0; c < ordered.classes.size(); ++c) {
    const int coordinate = static_cast<int>(c);
    ordered.classes[c].pool =
        std::max(training.pool_size(coordinate), evaluation.pool_size(coordinate));
  }
  ordered.micro_batches = schedule.micro_batches;
  ordered.predicted_step_ns = simulated.makespan_ns;
  if (step != nullptr) *step = std::move(simulated);
  return ordered;
}

}  // namespace mgc
