#include "passes/plan/order.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "passes/plan/delay_reductions.h"
#include "passes/plan/forms/compute_list.h"
#include "passes/plan/time/simulate_step.h"

namespace mgc {
namespace {

// Whether some reductions of the plan were moved.
bool DelayAll(const Machine& machine, StagedPlan* staged) {
  const CostModel costs{staged->mesh, machine, staged->stages};
  bool moved = false;
  for (StagedClass& c : staged->classes) {
    for (StagedChunk& chunk : c.train.chunks) {
      moved |= DelayReductions(costs, staged->segments, c.coordinate, &chunk);
    }
  }
  return moved;
}

void TakePools(const StepSimulator& simulator, OrderedPlan* ordered) {
  for (size_t c = 0; c < ordered->classes.size(); ++c) {
    int64_t& pool = ordered->classes[c].pool;
    pool = std::max<int64_t>(pool, simulator.pool_size(static_cast<int>(c)));
  }
}

void TakeTimes(const SimulatedStep& step, OrderedPlan* ordered) {
  ordered->makespan_ns = step.makespan_ns;
  for (size_t c = 0; c < ordered->classes.size(); ++c) {
    ordered->classes[c].time = {step.busy_ns[c], step.update_ns[c], step.collectives[c].exposed,
                                step.transfers_ns[c]};
  }
}

// With reductions where they are.
absl::StatusOr<OrderedPlan> OrderStarts(ScheduledPlan scheduled, const Machine& machine,
                                        OrderScope scope, SimulatedStep* step) {
  const PipelineSchedule& schedule = scheduled.schedule;
  OrderedPlan ordered;
  ordered.staged = std::move(scheduled.staged);
  const StagedPlan& staged = ordered.staged;
  const CostModel costs{staged.mesh, machine, staged.stages};
  ordered.classes.resize(staged.classes.size());
  std::vector<SimulatedClass> train;
  std::vector<SimulatedClass> eval;
  for (size_t c = 0; c < staged.classes.size(); ++c) {
    const StagedClass& from = staged.classes[c];
    OrderedClass& lists = ordered.classes[c];
    const std::vector<ScheduleAction>& actions = schedule.lists[c];
    const auto compute = [&](const StagedStep& of, bool backward) {
      return ComputeList(actions, staged.stages, of.chunks, backward);
    };
    lists.train.compute = compute(from.train, true);
    train.push_back({&from.train.chunks, &from.train.update, &lists.train});
    if (!scope.evaluation) continue;
    lists.eval.compute = compute(from.eval, false);
    eval.push_back({&from.eval.chunks, &from.eval.update, &lists.eval});
  }
  const SimulationSpec spec{costs, staged.segments, staged.stages, schedule.micro_batches};
  if (scope.evaluation) {
    StepSimulator evaluation(spec, std::move(eval), false);
    MGC_RETURN_IF_ERROR(evaluation.Run().status());
    TakePools(evaluation, &ordered);
  }
  StepSimulator training(spec, std::move(train), step != nullptr);
  MGC_ASSIGN_OR_RETURN(SimulatedStep simulated, training.Run());
  TakePools(training, &ordered);
  TakeTimes(simulated, &ordered);
  ordered.micro_batches = schedule.micro_batches;
  ordered.predicted_step_ns = StepNs(simulated, staged.mesh, machine);
  if (step != nullptr) *step = std::move(simulated);
  return ordered;
}

}  // namespace

absl::StatusOr<OrderedPlan> Order(ScheduledPlan scheduled, const Machine& machine,
                                  SimulatedStep* step, OrderScope scope) {
  if (!scope.delay_reductions) return OrderStarts(std::move(scheduled), machine, scope, step);
  ScheduledPlan delayed = scheduled;
  if (!DelayAll(machine, &delayed.staged)) {
    return OrderStarts(std::move(scheduled), machine, scope, step);
  }
  SimulatedStep now;
  SimulatedStep later;
  const bool keep = step != nullptr;
  MGC_ASSIGN_OR_RETURN(OrderedPlan first,
                       OrderStarts(std::move(scheduled), machine, scope, keep ? &now : nullptr));
  MGC_ASSIGN_OR_RETURN(OrderedPlan second,
                       OrderStarts(std::move(delayed), machine, scope, keep ? &later : nullptr));
  const bool is_first = first.predicted_step_ns < second.predicted_step_ns;
  if (keep) *step = is_first ? std::move(now) : std::move(later);
  return is_first ? std::move(first) : std::move(second);
}

}  // namespace mgc
