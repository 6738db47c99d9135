#include "passes/plan/order.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "graph/base/status.h"
#include "passes/plan/delay_reductions.h"
#include "passes/plan/forms/compute_list.h"
#include "passes/plan/time/segment_timer.h"
#include "passes/plan/time/simulate_step.h"

namespace mgc {
namespace {

// A training step whose last backwards sum gradients later, as it is simulated.
struct DelayedStep {
  std::vector<std::vector<StagedChunk>> chunks;  // by class
  std::vector<OrderedProgram> programs;
};

// Nothing where no reduction would move.
absl::optional<DelayedStep> DelayAll(const StagedPlan& staged, SegmentTimer* timer) {
  DelayedStep delayed;
  bool moved = false;
  for (const StagedClass& c : staged.classes) {
    delayed.chunks.push_back(c.train.chunks);
    for (StagedChunk& chunk : delayed.chunks.back()) {
      moved |= DelayReductions(c.coordinate, timer, &chunk);
    }
  }
  return moved ? absl::make_optional(std::move(delayed)) : absl::nullopt;
}

void TakePools(const StepSimulator& simulator, OrderedPlan* ordered) {
  for (size_t c = 0; c < ordered->classes.size(); ++c) {
    int64_t& pool = ordered->classes[c].pool;
    pool = std::max<int64_t>(pool, simulator.pool_size(static_cast<int>(c)));
  }
}

// The lists that are simulated, with nothing but compute in them.
OrderedPlan WithCompute(ScheduledPlan scheduled, bool evaluation) {
  OrderedPlan ordered;
  ordered.staged = std::move(scheduled.staged);
  ordered.micro_batches = scheduled.schedule.micro_batches;
  const StagedPlan& staged = ordered.staged;
  ordered.classes.resize(staged.classes.size());
  for (size_t c = 0; c < staged.classes.size(); ++c) {
    const auto compute = [&](const StagedStep& of, bool backward) {
      return ComputeList(scheduled.schedule.lists[c], staged.stages, of.chunks, backward);
    };
    ordered.classes[c].train.compute = compute(staged.classes[c].train, HasBackward(staged));
    if (evaluation) ordered.classes[c].eval.compute = compute(staged.classes[c].eval, false);
  }
  return ordered;
}

// Of a plan that outlives the simulator.
std::vector<SimulatedClass> TrainingOf(OrderedPlan* ordered) {
  std::vector<SimulatedClass> classes;
  for (size_t c = 0; c < ordered->classes.size(); ++c) {
    const StagedStep& staged = ordered->staged.classes[c].train;
    classes.push_back({&staged.chunks, &staged.update, &ordered->classes[c].train});
  }
  return classes;
}

absl::Status OrderEvaluation(const SimulationSpec& spec, OrderedPlan* ordered) {
  std::vector<SimulatedClass> classes;
  for (size_t c = 0; c < ordered->classes.size(); ++c) {
    const StagedStep& staged = ordered->staged.classes[c].eval;
    classes.push_back({&staged.chunks, &staged.update, &ordered->classes[c].eval});
  }
  StepSimulator evaluation(spec, std::move(classes), false);
  MGC_RETURN_IF_ERROR(evaluation.Run().status());
  TakePools(evaluation, ordered);
  return absl::OkStatus();
}

// The simulated step is that of the lists in the plan.
void Finish(const StepSimulator& simulator, const Machine& machine, SimulatedStep simulated,
            OrderedPlan* ordered, SimulatedStep* step) {
  TakePools(simulator, ordered);
  ordered->makespan_ns = simulated.makespan_ns;
  for (size_t c = 0; c < ordered->classes.size(); ++c) {
    ordered->classes[c].time = {simulated.busy_ns[c], simulated.update_ns[c],
                                simulated.collectives[c].exposed, simulated.transfers_ns[c]};
  }
  ordered->predicted_step_ns = StepNs(simulated, ordered->staged.mesh, machine);
  if (step != nullptr) *step = std::move(simulated);
}

// Of the order as it is and the one with delayed reductions the faster. Until the first last
// backward they are one.
absl::Status OrderTraining(const SimulationSpec& spec, absl::optional<DelayedStep> delayed,
                           OrderedPlan* ordered, SimulatedStep* step) {
  const Mesh& mesh = ordered->staged.mesh;
  const Machine& machine = spec.timer.model().machine;
  std::vector<SimulatedClass> classes = TrainingOf(ordered);
  StepSimulator now(spec, classes, step != nullptr);
  if (!delayed.has_value()) {
    MGC_ASSIGN_OR_RETURN(SimulatedStep simulated, now.Run());
    Finish(now, machine, std::move(simulated), ordered, step);
    return absl::OkStatus();
  }
  MGC_RETURN_IF_ERROR(now.RunToLastBackward());
  for (const OrderedClass& c : ordered->classes) delayed->programs.push_back(c.train);
  for (size_t c = 0; c < classes.size(); ++c) {
    classes[c].chunks = &delayed->chunks[c];
    classes[c].program = &delayed->programs[c];
  }
  StepSimulator later = now.With(std::move(classes));
  MGC_ASSIGN_OR_RETURN(SimulatedStep first, now.Run());
  MGC_ASSIGN_OR_RETURN(SimulatedStep second, later.Run());
  if (StepNs(first, mesh, machine) < StepNs(second, mesh, machine)) {
    Finish(now, machine, std::move(first), ordered, step);
    return absl::OkStatus();
  }
  for (size_t c = 0; c < ordered->classes.size(); ++c) {
    ordered->staged.classes[c].train.chunks = std::move(delayed->chunks[c]);
    ordered->classes[c].train = std::move(delayed->programs[c]);
  }
  Finish(later, machine, std::move(second), ordered, step);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OrderedPlan> Order(ScheduledPlan scheduled, const Machine& machine,
                                  SimulatedStep* step, OrderScope scope) {
  scope.evaluation = scope.evaluation && HasEvaluation(scheduled.staged);
  OrderedPlan ordered = WithCompute(std::move(scheduled), scope.evaluation);
  const StagedPlan& staged = ordered.staged;
  SegmentTimer timer({staged.mesh, machine, staged.stages}, staged.segments);
  const SimulationSpec spec{timer, staged.stages, ordered.micro_batches, scope.transfers};
  if (scope.evaluation) MGC_RETURN_IF_ERROR(OrderEvaluation(spec, &ordered));
  absl::optional<DelayedStep> delayed;
  if (scope.delay_reductions) delayed = DelayAll(staged, &timer);
  MGC_RETURN_IF_ERROR(OrderTraining(spec, std::move(delayed), &ordered, step));
  return ordered;
}

}  // namespace mgc
