#include "graph/verify/placement/placement.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/verify/placement/loss_scale.h"
#include "graph/verify/placement/placement_calls.h"
#include "graph/verify/placement/placement_ends.h"
#include "graph/verify/placement/placement_segment.h"
#include "graph/verify/placement/precision.h"

namespace mgc {
namespace {

// Slots that calls may touch altogether; far above any compiled plan, reached in seconds.
constexpr int64_t kMostTouches = int64_t{1} << 24;
// The second micro-batch reads what the first has left.
constexpr int kMicroBatches = 2;

// Training or evaluation.
class StepPlacement {
 public:
  StepPlacement(const Plan& plan, bool eval, Diagnostics* findings)
      : plan_(plan), eval_(eval), findings_(*findings) {
    for (const PlanClass& rank_class : plan.classes) {
      classes_.emplace_back(plan, rank_class, eval, &shares_, findings);
    }
  }

  void Run() {
    for (size_t c = 0; c < classes_.size(); ++c) PlaceInputs(plan_, plan_.classes[c], &classes_[c]);
    const size_t stages = plan_.stages.size();
    values_.resize(stages);
    for (size_t s = 0; s < stages; ++s) RunAll(ChunkOf(s).prepare, s);
    for (int m = 0; m < kMicroBatches; ++m) {
      for (size_t s = 0; s < stages; ++s) RunForward(s);
      for (size_t s = stages; s-- > 0;) RunBackward(s, m);
    }
    for (size_t c = 0; c < classes_.size(); ++c) RunUpdate(c);
    CheckShares();
    const BlockHolders holders = FindHolders(plan_);
    for (size_t c = 0; c < classes_.size(); ++c) {
      if (!eval_) CheckParameters(plan_, plan_.classes[c], holders, &classes_[c], &findings_);
      CheckReports(plan_, plan_.classes[c], eval_, &classes_[c], &findings_);
      if (!eval_) CheckResults(plan_, plan_.classes[c], &classes_[c], &findings_);
      CheckTransfers(plan_.classes[c], eval_, &values_, &findings_);
    }
  }

 private:
  const std::vector<Chunk>& Chunks(size_t rank_class) const {
    const PlanClass& made = plan_.classes[rank_class];
    return eval_ ? made.eval_chunks : made.chunks;
  }
  size_t ClassOf(size_t stage) const { return static_cast<size_t>(plan_.stages[stage].rank_class); }
  const Chunk& ChunkOf(size_t stage) const {
    return Chunks(ClassOf(stage))[static_cast<size_t>(plan_.stages[stage].chunk)];
  }
  PlacedValues& At(size_t stage, BaseKind base) {
    return values_[stage][static_cast<size_t>(base)];
  }

  void RunAll(const std::vector<Call>& calls, size_t stage) {
    for (const Call& call : calls) classes_[ClassOf(stage)].RunOfChunk(call, &values_[stage]);
  }

  void RunForward(size_t stage) {
    for (PlacedValues& values : values_[stage]) values.Clear();
    if (stage > 0) At(stage, BaseKind::kInput) = At(stage - 1, BaseKind::kOutput);
    RunAll(ChunkOf(stage).forward, stage);
  }

  void RunBackward(size_t stage, int micro_batch) {
    if (stage + 1 < values_.size()) {
      At(stage, BaseKind::kGradInput) = At(stage + 1, BaseKind::kGradOutput);
    }
    const Chunk& chunk = ChunkOf(stage);
    const size_t list = ListOf(chunk, {ActionKind::kBackward, 0, micro_batch}, kMicroBatches);
    RunAll(*ListsOf(chunk)[list], stage);
  }

  void RunUpdate(size_t c) {
    const PlanClass& made = plan_.classes[c];
    size_t ordinal = 0;
    for (const Call& call : eval_ ? made.eval_update : made.update) {
      classes_[c].RunOfUpdate(call, ordinal);
      if (call.layer == kNoLayer) ++ordinal;
    }
  }

  // What is summed over all stages was made by one of them, each entry for itself.
  void CheckShares() {
    for (const auto& [key, share] : shares_) {
      const std::string name = absl::StrCat("%", EscapeBytes(share.name));
      if (share.owed_by_all) continue;
      for (const auto& [entry, stages] : share.stages) {
        if (stages == 1) continue;
        findings_.Add("placement_v9", share.reader,
                      absl::StrCat("sums ", name, " over pp, whose entry ", entry, " is made by ",
                                   stages, " stages, each of them the whole of it"));
        break;
      }
      if (static_cast<int64_t>(share.stages.size()) < share.entries) {
        findings_.Add("placement_v7", share.reader,
                      absl::StrCat("sums ", name, " over pp, of whose ", share.entries, " entries ",
                                   share.entries - static_cast<int64_t>(share.stages.size()),
                                   " are made by no stage"));
      }
    }
  }

  const Plan& plan_;
  const bool eval_;
  Diagnostics& findings_;
  StageShares shares_;
  std::vector<ClassCalls> classes_;
  std::vector<ChunkValues> values_;  // by stage
};

template <typename Fn>
void ForEachCall(const PlanClass& rank_class, const Fn& fn) {
  for (const auto* chunks : {&rank_class.chunks, &rank_class.eval_chunks}) {
    for (const Chunk& chunk : *chunks) {
      for (const auto* calls : ListsOf(chunk)) {
        for (const Call& call : *calls) fn(call, true);
      }
    }
  }
  for (const auto* calls : {&rank_class.update, &rank_class.eval_update}) {
    for (const Call& call : *calls) fn(call, call.layer != kNoLayer);
  }
}

// The segments that are called, and whether the update or the reductions before it do.
std::map<int, bool> SegmentsOfUpdate(const Plan& plan) {
  std::map<int, bool> of_update;
  for (const PlanClass& rank_class : plan.classes) {
    ForEachCall(rank_class, [&](const Call& call, bool) { of_update[call.segment]; });
    for (const Call& call : rank_class.update) of_update[call.segment] = true;
    for (const Chunk& chunk : rank_class.chunks) {
      for (const Call& call : ReductionsOf(chunk)) of_update[call.segment] = true;
    }
  }
  return of_update;
}

}  // namespace

void CheckPlacement(const Plan& plan, Diagnostics* findings) {
  std::set<std::pair<int, bool>> called;
  int64_t touches = 0;
  for (const PlanClass& rank_class : plan.classes) {
    ForEachCall(rank_class, [&](const Call& call, bool of_stage) {
      const Segment& segment = plan.segments[static_cast<size_t>(call.segment)];
      for (const Instr& instr : segment.instrs) {
        touches += static_cast<int64_t>(1 + instr.inputs.size() + instr.outputs.size());
      }
      called.emplace(call.segment, of_stage);
    });
  }
  for (const auto& [segment, of_stage] : called) {
    CheckSegmentPlacement(plan, plan.segments[static_cast<size_t>(segment)], of_stage, findings);
  }
  for (const auto& [segment, of_update] : SegmentsOfUpdate(plan)) {
    CheckPrecision(plan, plan.segments[static_cast<size_t>(segment)], of_update, findings);
  }
  if (touches > kMostTouches) {
    findings->Add("placement_v12", "plan",
                  absl::StrCat("its calls touch ", touches, " tensors, more than the ",
                               kMostTouches, " that are walked through"));
    return;
  }
  CheckLossScale(plan, findings);
  CheckModelInputs(plan, findings);
  CheckLeft(plan, findings);
  StepPlacement(plan, /*eval=*/false, findings).Run();
  if (HasEvaluation(plan)) StepPlacement(plan, /*eval=*/true, findings).Run();
}

}  // namespace mgc
