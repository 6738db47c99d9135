#include "passes/plan/allocate.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/diagnostic.h"
#include "graph/base/status.h"
#include "graph/ir/results.h"
#include "graph/plan/plan_check.h"
#include "passes/plan/forms/bind_addresses.h"
#include "passes/plan/place_frames.h"
#include "passes/plan/place_transients.h"

namespace mgc {
namespace {

// Lays out the arena of one class and gives everything in it its address.
class ClassAllocator {
 public:
  // Reads segments and blocks of `plan`; takes the lists of `ordered`.
  ClassAllocator(const Plan& plan, const StagedClass& staged, OrderedClass& ordered,
                 PlanClass* plan_class)
      : plan_(plan), staged_(staged), ordered_(ordered), plan_class_(plan_class) {}

  // False where the arena would be larger than a plan's may be; the class is unfinished then.
  bool Run() {
    plan_class_->coordinate = staged_.coordinate;
    LayBlocks();
    const int64_t stream = AlignUp(StreamBytes(plan_.segments, staged_));
    slot_bytes_ = SlotBytes(plan_.segments, staged_, ordered_);
    links_ = Region(2 * stream, &plan_class_->memory.boundaries);
    const Frames train = PlaceFrames(staged_.train.chunks, true, ordered_.train);
    const Frames eval = PlaceFrames(staged_.eval.chunks, false, ordered_.eval);
    const int64_t eval_bytes = AlignUp(eval.bytes) + TransientBytes(staged_.eval);
    frames_ = Region(std::max(train.bytes, eval_bytes), &plan_class_->memory.frames);
    boundaries_ = end_;
    for (const int64_t bytes : slot_bytes_) Region(bytes, &plan_class_->memory.boundaries);
    if (!fits_) return false;
    // An evaluation keeps nothing for a backward: its transients lie where training has frames.
    eval_transient_ = frames_ + AlignUp(eval.bytes);
    transient_ = Region(TransientBytes(staged_.train), &plan_class_->memory.transient);
    if (!fits_) return false;
    plan_class_->chunks = BindChunks(staged_.train.chunks, Regions(false));
    plan_class_->update = BindCalls(staged_.train.update, Regions(false));
    plan_class_->eval_chunks = BindChunks(staged_.eval.chunks, Regions(true));
    plan_class_->eval_update = BindCalls(staged_.eval.update, Regions(true));
    plan_class_->train = Placed(std::move(ordered_.train), train);
    plan_class_->eval = Placed(std::move(ordered_.eval), eval);
    plan_class_->memory.peak = end_;
    ForEachCall(staged_, [this](const StagedCall& call) {
      int64_t& workspace = plan_class_->memory.workspace;
      workspace = std::max(workspace, plan_.segments[call.segment].workspace_bytes);
    });
    return true;
  }

 private:
  // The next region of the arena; its size is added to a purpose.
  int64_t Region(int64_t bytes, int64_t* purpose) {
    const int64_t begin = end_;
    fits_ = fits_ && bytes <= kMaxPlanBytes - end_;
    if (!fits_) return begin;
    end_ += AlignUp(bytes);
    *purpose += AlignUp(bytes);
    return begin;
  }

  void LayBlocks() {
    MemoryUse& memory = plan_class_->memory;
    for (const StagedBlock& held : staged_.blocks) {
      plan_class_->blocks.push_back({held.block, held.layer, held.owner, 0, 0, 0});
    }
    eval_globals_ = Region(staged_.eval.global_bytes, &memory.transient);
    globals_ = Region(staged_.train.global_bytes, &memory.transient);
    const int64_t grads = end_;
    for (HeldBlock& held : plan_class_->blocks) {
      held.grad_base = Region(plan_.blocks[held.block].grad_bytes, &memory.grads);
    }
    plan_class_->zeroed = {{globals_, globals_ + staged_.train.zeroed_global_bytes}};
    if (end_ > grads) plan_class_->zeroed.push_back({grads, end_});
    plan_class_->eval_zeroed = {{eval_globals_, eval_globals_ + staged_.eval.zeroed_global_bytes}};
    owed_ = Region(staged_.train.owed_bytes, &memory.grads);
    for (HeldBlock& held : plan_class_->blocks) {
      held.param_base = Region(plan_.blocks[held.block].param_bytes, &memory.params);
    }
    for (HeldBlock& held : plan_class_->blocks) {
      held.state_base = Region(plan_.blocks[held.block].state_bytes, &memory.states);
    }
    copies_ = Region(std::max(staged_.train.copy_bytes, staged_.eval.copy_bytes), &memory.copies);
    plan_class_->global_bytes = staged_.train.global_bytes;
    plan_class_->eval_global_bytes = staged_.eval.global_bytes;
    plan_class_->scalars = BindNames(staged_.train.scalars, globals_);
    plan_class_->carried = BindNames(staged_.train.carried, globals_);
    plan_class_->reports = BindNames(staged_.train.reports, globals_);
    plan_class_->eval_reports = BindNames(staged_.eval.reports, eval_globals_);
    plan_class_->results = BindResults(staged_.train.results, globals_);
  }

  int64_t TransientBytes(const StagedStep& step) const {
    int64_t bytes = 0;
    ForEachCall(step, [&](const StagedCall& call) {
      bytes = std::max(bytes, plan_.segments[call.segment].transient_bytes);
    });
    return bytes;
  }

  // What finds the regions of a training step, or of an evaluation.
  RegionBase Regions(bool eval) const {
    return [this, eval](const StagedCall& call, size_t formal) {
      return BaseAt(plan_.segments[call.segment].formals[formal], call.layer, eval);
    };
  }

  int64_t BaseAt(const Formal& formal, int layer, bool eval) const {
    switch (formal.region) {
      case Region::kTransient:
        return eval ? eval_transient_ : transient_;
      case Region::kGlobals:
        return eval ? eval_globals_ : globals_;
      case Region::kCopies:
      case Region::kGathered:
        return copies_;
      case Region::kOwed:
        return owed_;
      case Region::kNorm:
        return globals_;
      case Region::kParams:
      case Region::kGrads:
      case Region::kStates: {
        const HeldBlock* held = FindHeld(plan_, *plan_class_, formal.block, layer);
        MGC_CHECK(held != nullptr) << "class " << plan_class_->coordinate << " holds no block for "
                                   << ToString(formal) << " of layer " << layer;
        return BlockBase(*held, formal.region);
      }
      case Region::kGradInput:
      case Region::kGradOutput:
        return links_;
      case Region::kFrame:
      case Region::kInput:
      case Region::kOutput:
        break;
    }
    MGC_CHECK(false) << ToString(formal) << " has no fixed address";
    return 0;
  }

  Program Placed(OrderedProgram ordered, const Frames& frames) const {
    std::vector<int64_t> at = frames.at;
    for (int64_t& frame : at) frame = frame < 0 ? -1 : frames_ + frame;
    return BindProgram(std::move(ordered), at, BoundarySlots(boundaries_, slot_bytes_));
  }

  const Plan& plan_;
  const StagedClass& staged_;
  OrderedClass& ordered_;
  PlanClass* plan_class_;
  int64_t end_ = 0;
  bool fits_ = true;
  int64_t globals_ = 0;
  int64_t eval_globals_ = 0;
  int64_t copies_ = 0;
  int64_t owed_ = 0;
  int64_t links_ = 0;
  int64_t frames_ = 0;
  int64_t boundaries_ = 0;
  int64_t transient_ = 0;
  int64_t eval_transient_ = 0;
  std::vector<int64_t> slot_bytes_;  // of the boundaries
};

// What lowers memory. A model that is asked has no gradients, no optimizer, and no backward.
absl::string_view WhatNeedsLess(const Plan& plan) {
  if (!IsAsked(plan.model)) return "more --tp, --pp, --zero 1 or --recompute full need less";
  const bool keeps = std::any_of(plan.blocks.begin(), plan.blocks.end(),
                                 [](const ParamBlock& block) { return !block.kept.empty(); });
  return keeps ? "more --tp, --pp, --int8 or a smaller --cache-length need less"
               : "more --tp, --pp or --int8 need less";
}

void AddTooLarge(const Plan& plan, const PlanClass& c, absl::string_view needs,
                 Diagnostics* errors) {
  errors->Add({/*label=*/"", absl::StrCat("pipeline rank ", c.coordinate, " needs ", needs,
                                          " [R8]; ", WhatNeedsLess(plan))});
}

}  // namespace

absl::StatusOr<Plan> Allocate(OrderedPlan ordered, KernelHost host) {
  Diagnostics errors;
  Plan plan;
  plan.mesh = ordered.staged.mesh;
  plan.segments = std::move(ordered.staged.segments);
  plan.blocks = std::move(ordered.staged.blocks);
  plan.predicted_step_ns = ordered.predicted_step_ns;
  plan.notes = std::move(ordered.staged.notes);
  plan.stages = std::move(ordered.staged.stages);
  for (Segment& segment : plan.segments) {
    PlaceTransients(&segment);
    segment.workspace_bytes = WorkspaceBound(segment, plan.mesh, host);
  }
  plan.classes.resize(ordered.classes.size());
  for (size_t c = 0; c < plan.classes.size(); ++c) {
    ClassAllocator allocator(plan, ordered.staged.classes[c], ordered.classes[c], &plan.classes[c]);
    if (!allocator.Run()) AddTooLarge(plan, plan.classes[c], "more than 2^58 bytes", &errors);
  }
  MGC_RETURN_IF_ERROR(errors.ToStatus());
  return plan;
}

absl::Status CheckFits(const Plan& plan) {
  Diagnostics errors;
  for (const PlanClass& c : plan.classes) {
    const int64_t needed = c.memory.peak + c.memory.workspace;
    if (needed <= plan.machine.memory) continue;
    AddTooLarge(plan, c,
                absl::StrCat(needed, " bytes, a device of ", plan.machine.name, " has ",
                             plan.machine.memory),
                &errors);
  }
  return errors.ToStatus();
}

}  // namespace mgc
