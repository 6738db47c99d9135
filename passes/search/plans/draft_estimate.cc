#include "passes/search/plans/draft_estimate.h"

#include <algorithm>
#include <utility>

#include "graph/base/status.h"
#include "passes/plan/delay_reductions.h"
#include "passes/plan/forms/compute_list.h"
#include "passes/plan/place_frames.h"
#include "passes/plan/time/segment_timer.h"
#include "passes/plan/time/simulate_step.h"
#include "passes/search/plans/class_memory.h"
#include "passes/search/plans/draft_step.h"

namespace mgc {
namespace {

struct SimulatedDraft {
  int64_t step_ns = 0;
  std::vector<int64_t> slots;  // of the boundary pool, by class
};

// Of the order as it is and the one with delayed reductions the faster, as passes/plan/order.h
// takes it.
class DraftSimulation {
 public:
  // All but the draft outlive it.
  DraftSimulation(DraftStep draft, const PlanSpread& spread, const Machine& machine)
      : machine_(machine),
        places_(spread.checked.placement.places),
        draft_(std::move(draft)),
        timer_({draft_.mesh, machine, places_}, std::move(draft_.segments)),
        spec_{timer_, places_, spread.checked.micro_batches, /*lists_transfers=*/false,
              spread.profile.stream_bytes},
        programs_(draft_.chunks.size()) {}

  absl::StatusOr<SimulatedDraft> Run(const PipelineSchedule& schedule) {
    for (size_t c = 0; c < programs_.size(); ++c) {
      programs_[c].compute = ComputeList(schedule.lists[c], places_, draft_.chunks[c], true);
    }
    std::vector<OrderedProgram> first_programs = programs_;
    StepSimulator now(spec_, ClassesOf(draft_.chunks, &first_programs), false);
    std::vector<std::vector<StagedChunk>> delayed = draft_.chunks;
    if (!DelayAll(&delayed)) return StepOf(&now);
    MGC_RETURN_IF_ERROR(now.RunToLastBackward());
    std::vector<OrderedProgram> programs = first_programs;
    StepSimulator later = now.With(ClassesOf(delayed, &programs));
    MGC_ASSIGN_OR_RETURN(SimulatedDraft first, StepOf(&now));
    MGC_ASSIGN_OR_RETURN(SimulatedDraft second, StepOf(&later));
    return first.step_ns < second.step_ns ? first : second;
  }

  // Behind Run: of the region of a class.
  int64_t FrameBytes(size_t c) const {
    return PlaceFrames(draft_.chunks[c], true, programs_[c]).bytes;
  }

 private:
  std::vector<SimulatedClass> ClassesOf(const std::vector<std::vector<StagedChunk>>& chunks,
                                        std::vector<OrderedProgram>* programs) const {
    std::vector<SimulatedClass> classes;
    for (size_t c = 0; c < chunks.size(); ++c) {
      classes.push_back({&chunks[c], &draft_.updates[c], &(*programs)[c]});
    }
    return classes;
  }
  bool DelayAll(std::vector<std::vector<StagedChunk>>* chunks) {
    bool moved = false;
    for (size_t c = 0; c < chunks->size(); ++c) {
      for (StagedChunk& chunk : (*chunks)[c]) {
        moved |= DelayReductions(static_cast<int>(c), &timer_, &chunk);
      }
    }
    return moved;
  }
  absl::StatusOr<SimulatedDraft> StepOf(StepSimulator* simulator) const {
    MGC_ASSIGN_OR_RETURN(const SimulatedStep step, simulator->Run());
    SimulatedDraft draft;
    draft.step_ns = StepNs(step, draft_.mesh, machine_);
    for (size_t c = 0; c < draft_.chunks.size(); ++c) {
      draft.slots.push_back(simulator->pool_size(static_cast<int>(c)));
    }
    return draft;
  }

  const Machine& machine_;
  const std::vector<StagePlace>& places_;
  DraftStep draft_;
  SegmentTimer timer_;
  const SimulationSpec spec_;
  std::vector<OrderedProgram> programs_;  // by class
};

}  // namespace

int64_t DraftEstimate::PeakBytes() const {
  int64_t most = 0;
  for (const ClassEstimate& c : classes) most = std::max(most, c.PeakBytes());
  return most;
}

int64_t DraftEstimate::LeastPeakBytes() const {
  int64_t most = 0;
  for (const ClassEstimate& c : classes) {
    most = std::max(most, c.PeakBytes() - (c.slots - c.slots_bound.least) * slot_bytes);
  }
  return most;
}

absl::StatusOr<DraftEstimate> EstimateByDraft(const DraftProfile& draft, const PlanSpread& spread,
                                              const Machine& machine, ScheduleCache* schedules) {
  if (draft.layers.size() == 1 && spread.parts->stages.size() > 1) {
    return absl::FailedPreconditionError("a draft of several stages needs a model's layers");
  }
  const PipelineSchedule& schedule = schedules->Of(spread.config, spread.checked);
  DraftSimulation simulation(DraftStepOf(draft, spread, machine), spread, machine);
  MGC_ASSIGN_OR_RETURN(const SimulatedDraft simulated, simulation.Run(schedule));
  const std::vector<PoolBound> bounds = BoundPools(schedule, spread.checked.placement.places);
  DraftEstimate estimate;
  estimate.step_ns = simulated.step_ns;
  estimate.slot_bytes = spread.profile.stream_bytes;
  for (size_t c = 0; c < bounds.size(); ++c) {
    ClassEstimate made{ClassMemory(draft, spread, c), simulated.slots[c], bounds[c]};
    MemoryUse& use = made.memory;
    use.frames = AlignUp(simulation.FrameBytes(c));
    use.boundaries += made.slots * estimate.slot_bytes;
    use.peak = use.params + use.grads + use.states + use.copies + use.frames + use.boundaries +
               use.transient;
    estimate.classes.push_back(made);
  }
  return estimate;
}

}  // namespace mgc
