#include "passes/plan/forms/draft_plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "graph/types/machine.h"
#include "passes/plan/forms/bind_addresses.h"
#include "passes/plan/forms/compute_list.h"

namespace mgc {
namespace {

constexpr int64_t kEndless = int64_t{1} << 57;  // bytes; far above any device

int64_t AtZero(const StagedCall& /*call*/, size_t /*formal*/) { return 0; }

void SetSideBySide(Segment* segment) {
  int64_t end = 0;
  for (Slot& slot : segment->slots) {
    const bool fits = slot.bytes >= 0 && slot.bytes < kEndless - end - kSlotAlignment;
    if (slot.formal != 0 || !fits) continue;
    slot.offset = end;
    end += AlignUp(slot.bytes);
  }
  segment->transient_bytes = end;
  segment->workspace_bytes = kEndless;
}

PlanClass DraftOf(const StagedClass& staged) {
  PlanClass plan_class;
  plan_class.coordinate = staged.coordinate;
  for (const StagedBlock& held : staged.blocks) {
    plan_class.blocks.push_back({held.block, held.layer, held.owner, 0, 0, 0});
  }
  plan_class.chunks = BindChunks(staged.train.chunks, AtZero);
  plan_class.eval_chunks = BindChunks(staged.eval.chunks, AtZero);
  plan_class.update = BindCalls(staged.train.update, AtZero);
  plan_class.eval_update = BindCalls(staged.eval.update, AtZero);
  plan_class.global_bytes = staged.train.global_bytes;
  plan_class.eval_global_bytes = staged.eval.global_bytes;
  plan_class.scalars = BindNames(staged.train.scalars, 0);
  plan_class.carried = BindNames(staged.train.carried, 0);
  plan_class.reports = BindNames(staged.train.reports, 0);
  plan_class.eval_reports = BindNames(staged.eval.reports, 0);
  plan_class.results = BindResults(staged.train.results, 0);
  plan_class.memory.peak = kEndless;
  plan_class.memory.workspace = kEndless;
  return plan_class;
}

Program DraftOf(const OrderedProgram& ordered, const std::vector<int64_t>& slot_bytes) {
  std::vector<int64_t> frames;
  frames.reserve(ordered.compute.size());
  for (const OrderedAction& action : ordered.compute) {
    frames.push_back(IsOfMicroBatch(action.ref.kind) ? 0 : -1);
  }
  return BindProgram(ordered, frames, {0, slot_bytes});
}

Program DraftOf(std::vector<OrderedAction> compute) {
  return DraftOf(OrderedProgram{std::move(compute), {}}, {});
}

}  // namespace

Plan DraftOf(const StagedPlan& staged, const Graph& model) {
  Plan draft;
  draft.mesh = staged.mesh;
  draft.machine = MachinePresets().front();
  draft.micro_batch_size = 1;
  draft.global_batch_size = 1;
  draft.num_micro_batches = 1;
  draft.seq_length = 1;
  draft.model = model;
  draft.segments = staged.segments;
  for (Segment& segment : draft.segments) SetSideBySide(&segment);
  draft.blocks = staged.blocks;
  for (const StagedClass& c : staged.classes) draft.classes.push_back(DraftOf(c));
  draft.stages = staged.stages;
  return draft;
}

Plan DraftOf(const ScheduledPlan& scheduled, const Graph& model) {
  const StagedPlan& staged = scheduled.staged;
  const PipelineSchedule& schedule = scheduled.schedule;
  Plan draft = DraftOf(staged, model);
  draft.num_micro_batches = schedule.micro_batches;
  draft.global_batch_size = schedule.micro_batches;
  for (size_t c = 0; c < draft.classes.size(); ++c) {
    const auto compute = [&](const StagedStep& of, bool backward) {
      return DraftOf(ComputeList(schedule.lists[c], staged.stages, of.chunks, backward));
    };
    draft.classes[c].train = compute(staged.classes[c].train, HasBackward(staged));
    if (HasEvaluation(staged)) draft.classes[c].eval = compute(staged.classes[c].eval, false);
  }
  return draft;
}

Plan DraftOf(const OrderedPlan& ordered, const Graph& model) {
  const StagedPlan& staged = ordered.staged;
  Plan draft = DraftOf(staged, model);
  draft.num_micro_batches = ordered.micro_batches;
  draft.global_batch_size = ordered.micro_batches;
  draft.predicted_step_ns = ordered.predicted_step_ns;
  for (size_t c = 0; c < draft.classes.size(); ++c) {
    const std::vector<int64_t> slot_bytes =
        SlotBytes(staged.segments, staged.classes[c], ordered.classes[c]);
    draft.classes[c].train = DraftOf(ordered.classes[c].train, slot_bytes);
    draft.classes[c].eval = DraftOf(ordered.classes[c].eval, slot_bytes);
  }
  return draft;
}

}  // namespace mgc
