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
#include "passes/plan/time/steady_rounds.h"

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
void ListCompute(const PipelineSchedule& schedule, bool evaluation, OrderedPlan* ordered) {
  const StagedPlan& staged = ordered->staged;
  ordered->micro_batches = schedule.micro_batches;
  ordered->classes.assign(staged.classes.size(), {});
  for (size_t c = 0; c < staged.classes.size(); ++c) {
    const auto compute = [&](const StagedStep& of, bool backward) {
      return ComputeList(schedule.lists[c], staged.stages, of.chunks, backward);
    };
    ordered->classes[c].train.compute = compute(staged.classes[c].train, HasBackward(staged));
    if (evaluation) ordered->classes[c].eval.compute = compute(staged.classes[c].eval, false);
  }
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
// backward they are one. `left_out`: rounds that are not in the lists; false where they do not
// repeat, and nothing is ordered.
absl::StatusOr<bool> OrderTraining(const SimulationSpec& spec, absl::optional<DelayedStep> delayed,
                                   int64_t left_out, OrderedPlan* ordered, SimulatedStep* step) {
  const Mesh& mesh = ordered->staged.mesh;
  const Machine& machine = spec.timer.model().machine;
  std::vector<SimulatedClass> classes = TrainingOf(ordered);
  StepSimulator now(spec, classes, step != nullptr);
  if (!delayed.has_value()) {
    MGC_ASSIGN_OR_RETURN(SimulatedStep simulated, now.Run());
    if (left_out > 0 && !AddSteadyRounds(left_out, &simulated)) return false;
    Finish(now, machine, std::move(simulated), ordered, step);
    return true;
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
  const bool steady =
      left_out == 0 || (AddSteadyRounds(left_out, &first) && AddSteadyRounds(left_out, &second));
  if (!steady) return false;
  if (StepNs(first, mesh, machine) < StepNs(second, mesh, machine)) {
    Finish(now, machine, std::move(first), ordered, step);
    return true;
  }
  for (size_t c = 0; c < ordered->classes.size(); ++c) {
    ordered->staged.classes[c].train.chunks = std::move(delayed->chunks[c]);
    ordered->classes[c].train = std::move(delayed->programs[c]);
  }
  Finish(later, machine, std::move(second), ordered, step);
  return true;
}

// As OrderTraining: of these lists, with evaluation where that is asked for.
absl::StatusOr<bool> OrderSchedule(const PipelineSchedule& schedule, int64_t round,
                                   int64_t left_out, const OrderScope& scope, SegmentTimer* timer,
                                   OrderedPlan* ordered, SimulatedStep* step) {
  ListCompute(schedule, scope.evaluation, ordered);
  SimulationSpec spec{*timer, ordered->staged.stages, ordered->micro_batches, scope.transfers};
  spec.round = round;
  if (scope.evaluation) MGC_RETURN_IF_ERROR(OrderEvaluation(spec, ordered));
  absl::optional<DelayedStep> delayed;
  if (scope.delay_reductions) delayed = DelayAll(ordered->staged, timer);
  return OrderTraining(spec, std::move(delayed), left_out, ordered, step);
}

// The micro-batch of a shorter schedule that does what one of the whole does: those of the rounds
// that were left out what those before them do.
int64_t StandsFor(const ShorterSchedule& shorter, int64_t micro_batch) {
  const int64_t last = shorter.schedule.micro_batches - shorter.round;  // round, and what is left
  const int64_t left_out = shorter.left_out * shorter.round;
  if (micro_batch < last) return micro_batch;
  if (micro_batch >= last + left_out) return micro_batch - left_out;
  return last - shorter.round + (micro_batch - last) % shorter.round;
}

// `of` with the slots that the actions of a shorter list have.
void TakeSlots(const ShorterSchedule& shorter, const std::vector<OrderedAction>& from,
               std::vector<OrderedAction>* of) {
  // By micro-batch: forward and backward of every chunk. Nothing else has slots.
  const int64_t chunks = shorter.schedule.vp;
  const auto place = [&](const ActionRef& ref, int64_t micro_batch) {
    const int64_t kind = ref.kind == ActionKind::kForward ? 0 : 1;
    return static_cast<size_t>((2 * micro_batch + kind) * chunks + ref.chunk);
  };
  std::vector<const OrderedAction*> known(
      static_cast<size_t>(2 * shorter.schedule.micro_batches * chunks), nullptr);
  for (const OrderedAction& action : from) {
    if (IsOfMicroBatch(action.ref.kind)) known[place(action.ref, action.ref.micro_batch)] = &action;
  }
  for (OrderedAction& action : *of) {
    if (!IsOfMicroBatch(action.ref.kind)) continue;
    const OrderedAction& same =
        *known[place(action.ref, StandsFor(shorter, action.ref.micro_batch))];
    action.input = same.input;
    action.output = same.output;
    action.grad_input = same.grad_input;
    action.grad_output = same.grad_output;
  }
}

// The whole lists of a plan that has been ordered without some rounds: where frames lie depends on
// all that came before.
void PutRoundsBack(const PipelineSchedule& schedule, const ShorterSchedule& shorter,
                   bool evaluation, OrderedPlan* ordered) {
  const std::vector<OrderedClass> few = std::move(ordered->classes);
  ListCompute(schedule, evaluation, ordered);
  ordered->counted_rounds = shorter.left_out;
  for (size_t c = 0; c < few.size(); ++c) {
    OrderedClass& whole = ordered->classes[c];
    TakeSlots(shorter, few[c].train.compute, &whole.train.compute);
    TakeSlots(shorter, few[c].eval.compute, &whole.eval.compute);
    whole.pool = few[c].pool;
    whole.time = few[c].time;
  }
}

}  // namespace

absl::StatusOr<OrderedPlan> Order(ScheduledPlan scheduled, const Machine& machine,
                                  SimulatedStep* step, OrderScope scope,
                                  const absl::optional<ShorterSchedule>& shorter) {
  scope.evaluation = scope.evaluation && HasEvaluation(scheduled.staged);
  OrderedPlan ordered;
  ordered.staged = std::move(scheduled.staged);
  const StagedPlan& staged = ordered.staged;
  SegmentTimer timer({staged.mesh, machine, staged.stages}, staged.segments);
  bool is_steady = false;
  if (shorter.has_value()) {
    MGC_ASSIGN_OR_RETURN(is_steady,
                         OrderSchedule(shorter->schedule, shorter->round, shorter->left_out, scope,
                                       &timer, &ordered, step));
    if (is_steady) PutRoundsBack(scheduled.schedule, *shorter, scope.evaluation, &ordered);
  }
  if (!is_steady) {
    MGC_RETURN_IF_ERROR(
        OrderSchedule(scheduled.schedule, 0, 0, scope, &timer, &ordered, step).status());
  }
  return ordered;
}

}  // namespace mgc
