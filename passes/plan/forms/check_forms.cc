#include "passes/plan/forms/check_forms.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/plan/plan_check.h"
#include "graph/plan/plan_refs.h"
#include "graph/plan/step_tables.h"
#include "passes/plan/forms/draft_plan.h"

namespace mgc {
namespace {

template <typename... Parts>
void Report(Diagnostics* violations, const std::string& place, const char* label,
            const Parts&... parts) {
  violations->Add(label, place, absl::StrCat(parts...));
}

std::string PlaceOf(const StagedClass& c) { return absl::StrCat("class ", c.coordinate); }

// --- Staged --------------------------------------------------------------------------------------

// staged_c1.
void CheckUndecided(const StagedPlan& staged, Diagnostics* violations) {
  for (const Segment& segment : staged.segments) {
    const std::string place = absl::StrCat("segment ", EscapeBytes(segment.name));
    if (segment.transient_bytes != 0 || segment.workspace_bytes != 0) {
      Report(violations, place, "staged_c1", "has ", segment.transient_bytes,
             " transient bytes and ", segment.workspace_bytes,
             " of workspace; they are 0 until allocate");
    }
    for (size_t s = 0; s < segment.slots.size(); ++s) {
      const Slot& slot = segment.slots[s];
      if (slot.formal != 0 || slot.offset == 0) continue;
      Report(violations, place, "staged_c1", "transient slot %", s, " ", EscapeBytes(slot.name),
             " is at ", slot.offset, "; it is at 0 until allocate");
    }
  }
}

// Bit by StagedBase: where a formal of a region may be bound to.
int BasesOf(Region region) {
  const auto bit = [](StagedBase base) { return 1 << static_cast<int>(base); };
  switch (region) {
    case Region::kFrame:
      return bit(StagedBase::kFrame);
    case Region::kInput:
      return bit(StagedBase::kInput) | bit(StagedBase::kFrame);
    case Region::kOutput:
      return bit(StagedBase::kOutput) | bit(StagedBase::kFrame);
    case Region::kGradInput:
      return bit(StagedBase::kGradInput) | bit(StagedBase::kRegion);
    case Region::kGradOutput:
      return bit(StagedBase::kGradOutput) | bit(StagedBase::kRegion);
    case Region::kTransient:
    case Region::kParams:
    case Region::kGrads:
    case Region::kStates:
    case Region::kCopies:
    case Region::kGathered:
    case Region::kOwed:
    case Region::kNorm:
    case Region::kGlobals:
      break;
  }
  return bit(StagedBase::kRegion);
}

// Where the memory of one class is, whose draft has passed the check of plans.
class ClassCheck {
 public:
  ClassCheck(const Plan& draft, const StagedClass& staged, Diagnostics* violations)
      : draft_(draft),
        drafted_(draft.classes[static_cast<size_t>(staged.coordinate)]),
        staged_(staged),
        stream_bytes_(AlignUp(StreamBytes(draft.segments, staged))),
        violations_(violations) {}

  void Run() {
    for (const StagedStep* step : {&staged_.train, &staged_.eval}) {
      ForEachCall(*step, [&](const StagedCall& call) { CheckCall(*step, call); });
      CheckGlobals(*step);
    }
  }

 private:
  void CheckCall(const StagedStep& step, const StagedCall& call) {
    const Segment& segment = draft_.segments[static_cast<size_t>(call.segment)];
    for (size_t f = 0; f < segment.formals.size(); ++f) {
      const Formal& formal = segment.formals[f];
      const StagedBase base = call.bindings[f].base;
      const bool held = !IsOfBlock(formal.region) || HeldBy(formal, call.layer) != nullptr;
      const bool fits = (BasesOf(formal.region) >> static_cast<int>(base) & 1) != 0;
      if (held && fits) {
        CheckSlots(step, call, static_cast<int>(f));
        continue;
      }
      Report(violations_, PlaceOf(staged_), "staged_c2", "calls ", EscapeBytes(segment.name),
             " for layer ", call.layer, ", whose `", EscapeBytes(ToString(formal)), "` ",
             held ? "is bound to what it is not in" : "is of a block that the class does not hold");
    }
  }

  const HeldBlock* HeldBy(const Formal& formal, int layer) const {
    return FindHeld(draft_, drafted_, formal.block, layer);
  }

  // Bytes that a call's formal may reach; none for frames and transients, which are checked as a
  // plan's, and for bundles, which end where they do (staged_c5).
  absl::optional<int64_t> BytesOf(const StagedStep& step, const StagedCall& call,
                                  const Formal& formal, StagedBase base) const {
    if (base != StagedBase::kRegion) return absl::nullopt;
    if (IsBoundary(formal.region)) return 2 * stream_bytes_;  // two links between layers, in turn
    if (formal.region == Region::kTransient) return absl::nullopt;
    if (formal.region == Region::kNorm) return staged_.train.global_bytes;
    if (formal.region == Region::kGlobals) return step.global_bytes;
    if (formal.region == Region::kOwed) return step.owed_bytes;
    if (formal.region == Region::kCopies || formal.region == Region::kGathered) {
      return step.copy_bytes;
    }
    const ParamBlock& block = draft_.blocks[static_cast<size_t>(HeldBy(formal, call.layer)->block)];
    if (formal.region == Region::kParams) return block.param_bytes;
    return formal.region == Region::kGrads ? block.grad_bytes : block.state_bytes;
  }

  void CheckSlots(const StagedStep& step, const StagedCall& call, int formal) {
    const Segment& segment = draft_.segments[static_cast<size_t>(call.segment)];
    const Formal& named = segment.formals[static_cast<size_t>(formal)];
    const StagedBinding& binding = call.bindings[static_cast<size_t>(formal)];
    const absl::optional<int64_t> bytes = BytesOf(step, call, named, binding.base);
    if (!bytes.has_value()) return;
    for (const Slot& slot : segment.slots) {
      const int64_t end = binding.offset + slot.offset + slot.bytes;
      if (slot.formal != formal || end <= *bytes) continue;
      Report(violations_, PlaceOf(staged_), "staged_c3", "calls ", EscapeBytes(segment.name),
             " for layer ", call.layer, ", whose slot ", EscapeBytes(slot.name), " ends at ", end,
             " of ", *bytes, " bytes of `", EscapeBytes(ToString(named)), "`");
    }
  }

  void CheckGlobals(const StagedStep& step) {
    if (step.zeroed_global_bytes < 0 || step.zeroed_global_bytes > step.global_bytes) {
      Report(violations_, PlaceOf(staged_), "staged_c4", "zeroes ", step.zeroed_global_bytes,
             " bytes of ", step.global_bytes, " of globals");
    }
    for (const auto* names : {&step.scalars, &step.carried, &step.reports}) {
      for (const NamedOffset& named : *names) {
        const int64_t end = named.offset + static_cast<int64_t>(sizeof(double));
        if (end <= step.global_bytes) continue;
        Report(violations_, PlaceOf(staged_), "staged_c4", "`", EscapeBytes(named.name),
               "` ends at ", end, " of ", step.global_bytes, " bytes of globals");
      }
    }
    for (const StagedResult& result : step.results) {
      const int64_t end =
          result.offset +
          SizeOf(result.type.dtype) * LocalElements(result.type, result.sharding, draft_.mesh);
      if (end <= step.global_bytes) continue;
      Report(violations_, PlaceOf(staged_), "staged_c4", "result `", EscapeBytes(result.name),
             "` ends at ", end, " of ", step.global_bytes, " bytes of globals");
    }
  }

  const Plan& draft_;
  const PlanClass& drafted_;
  const StagedClass& staged_;
  const int64_t stream_bytes_;
  Diagnostics* violations_;
};

// staged_c5.
void CheckBundles(const StagedPlan& staged, StagedStep StagedClass::*step,
                  Diagnostics* violations) {
  const auto behind = [&](size_t stage, StagedBase base) {
    const StagePlace& place = staged.stages[stage];
    const StagedStep& of = staged.classes[static_cast<size_t>(place.rank_class)].*step;
    return BytesBehind(staged.segments, of.chunks[static_cast<size_t>(place.chunk)], base);
  };
  const auto compare = [&](size_t from, int64_t left, size_t to, int64_t taken) {
    if (left == taken) return;
    Report(violations, absl::StrCat("stage ", from), "staged_c5", "leaves ", left,
           " bytes, of which stage ", to, " takes ", taken);
  };
  for (size_t s = 0; s + 1 < staged.stages.size(); ++s) {
    compare(s, behind(s, StagedBase::kOutput), s + 1, behind(s + 1, StagedBase::kInput));
    compare(s + 1, behind(s + 1, StagedBase::kGradOutput), s, behind(s, StagedBase::kGradInput));
  }
}

// --- Scheduled -----------------------------------------------------------------------------------

// scheduled_c1.
void CheckLists(const ScheduledPlan& scheduled, Diagnostics* violations) {
  const StagedPlan& staged = scheduled.staged;
  const auto& lists = scheduled.schedule.lists;
  if (lists.size() != staged.classes.size()) {
    Report(violations, "plan", "scheduled_c1", lists.size(), " lists for ", staged.classes.size(),
           " classes");
    return;
  }
  for (size_t c = 0; c < lists.size(); ++c) {
    const StagedClass& own = staged.classes[c];
    for (const ScheduleAction& action : lists[c]) {
      const bool runs = action.kind == ScheduleActionKind::kForward ||
                        action.kind == ScheduleActionKind::kBackward;
      const bool own_stage =
          IsIndex(action.stage, staged.stages) &&
          staged.stages[static_cast<size_t>(action.stage)].rank_class == static_cast<int>(c);
      const int chunk = own_stage ? staged.stages[static_cast<size_t>(action.stage)].chunk : -1;
      if (runs && IsIndex(chunk, own.train.chunks) && IsIndex(chunk, own.eval.chunks)) continue;
      Report(violations, PlaceOf(own), "scheduled_c1", "lists ", ToString(action),
             runs ? ", of a stage that it does not have" : ", which no segment is for");
    }
  }
}

// --- Ordered -------------------------------------------------------------------------------------

// ordered_c1 of one program.
void CheckPool(const OrderedProgram& program, int64_t pool, const std::string& place,
               Diagnostics* violations) {
  const auto check = [&](int64_t slot, int64_t least) {
    if (slot >= least && slot < pool) return;
    Report(violations, place, "ordered_c1", "uses boundary slot ", slot, " of ", pool);
  };
  for (const OrderedAction& action : program.compute) {
    for (const int64_t slot :
         {action.input, action.output, action.grad_input, action.grad_output}) {
      check(slot, -1);
    }
  }
  for (const OrderedTransfer& transfer : program.transfers) check(transfer.slot, 0);
}

void CheckPools(const OrderedPlan& ordered, Diagnostics* violations) {
  const std::vector<StagedClass>& classes = ordered.staged.classes;
  if (ordered.classes.size() != classes.size()) {
    Report(violations, "plan", "ordered_c1", ordered.classes.size(), " classes are ordered of ",
           classes.size());
    return;
  }
  for (size_t c = 0; c < classes.size(); ++c) {
    const OrderedClass& own = ordered.classes[c];
    CheckPool(own.train, own.pool, PlaceOf(classes[c]), violations);
    CheckPool(own.eval, own.pool, PlaceOf(classes[c]), violations);
  }
}

int64_t CollectivesOf(const StepTables& tables, const StepAction& action) {
  int64_t count = 0;
  for (const Call& call : *action.calls) {
    count += static_cast<int64_t>(tables.segments[static_cast<size_t>(call.segment)].starts.size());
  }
  return count;
}

// ordered_c2, ordered_c3.
void CheckTransfers(const StepTables& tables, const StepClass& own, const StagedPlan& staged,
                    Diagnostics* violations) {
  const StagedClass& from = staged.classes[static_cast<size_t>(own.plan_class->coordinate)];
  const std::vector<StagedChunk>& chunks = (tables.eval ? from.eval : from.train).chunks;
  const std::string place = absl::StrCat("class ", own.plan_class->coordinate);
  for (const StepTransfer& step : own.transfers) {
    const Transfer& transfer = *step.transfer;
    const TransferRef& ref = transfer.ref;
    const bool forward = IsForward(ref.kind);
    const ActionRef user_ref{forward ? ActionKind::kForward : ActionKind::kBackward, ref.chunk,
                             ref.micro_batch};
    const int user = own.IndexOf(user_ref);  // listed, where the transfer is: plan_c11
    const Action& action = *own.actions[static_cast<size_t>(user)].action;
    const bool send = IsSend(ref.kind);
    const int64_t there = send ? (forward ? action.output : action.grad_output)
                               : (forward ? action.input : action.grad_input);
    const StagedBase base = send ? (forward ? StagedBase::kOutput : StagedBase::kGradOutput)
                                 : (forward ? StagedBase::kInput : StagedBase::kGradInput);
    const int64_t bytes =
        BytesBehind(staged.segments, chunks[static_cast<size_t>(ref.chunk)], base);
    if (transfer.address != there || transfer.bytes != bytes) {
      Report(violations, place, "ordered_c2", NameOf(ref, *own.chunks), " moves ", transfer.bytes,
             " bytes of ", bytes,
             transfer.address == there ? "" : ", at another slot than its action has");
    }
    const StepAction& anchor = own.actions[static_cast<size_t>(own.IndexOf(transfer.anchor))];
    const int64_t starts = CollectivesOf(tables, anchor);
    if (transfer.issued <= starts) continue;
    Report(violations, place, "ordered_c3", NameOf(ref, *own.chunks), " stands behind ",
           transfer.issued, " collectives of ", NameOf(transfer.anchor, *own.chunks),
           ", which has ", starts);
  }
}

// By group of collectives between classes: what a class runs, in order.
std::vector<std::vector<int>> SignaturesOf(const StepTables& tables, const StepClass& own) {
  std::vector<std::vector<int>> signatures(tables.groups.size());
  for (const StepAction& action : own.actions) {
    for (const Call& call : *action.calls) {
      for (const StepStart& start : tables.segments[static_cast<size_t>(call.segment)].starts) {
        if (start.group == kOwnGroup) continue;
        signatures[static_cast<size_t>(start.group)].push_back(start.signature);
      }
    }
  }
  return signatures;
}

// ordered_c4.
void CheckGroups(const StepTables& tables, Diagnostics* violations) {
  std::vector<std::vector<std::vector<int>>> signatures;
  for (const StepClass& own : tables.classes) signatures.push_back(SignaturesOf(tables, own));
  for (size_t g = 0; g < tables.groups.size(); ++g) {
    const size_t first = static_cast<size_t>(tables.groups[g].front());
    for (const int member : tables.groups[g]) {
      const std::vector<int>& expected = signatures[first][g];
      const std::vector<int>& found = signatures[static_cast<size_t>(member)][g];
      if (found == expected) continue;
      const auto [at, other] =
          std::mismatch(expected.begin(), expected.end(), found.begin(), found.end());
      Report(violations, absl::StrCat("class ", member), "ordered_c4", "runs ", found.size(),
             " collectives of group ", tables.group_names[g], ", class ", first, " ",
             expected.size(), "; number ", at - expected.begin(), " is the first that differs");
    }
  }
}

}  // namespace

Diagnostics FindViolations(const StagedPlan& staged, const Graph& model) {
  Diagnostics violations;
  CheckUndecided(staged, &violations);
  if (!violations.empty()) return violations;
  const Plan draft = DraftOf(staged, model);
  violations = FindPlanViolations(draft, PlanExtent::kStages);
  if (!violations.empty()) return violations;
  for (const StagedClass& c : staged.classes) ClassCheck(draft, c, &violations).Run();
  if (!violations.empty()) return violations;
  CheckBundles(staged, &StagedClass::train, &violations);
  CheckBundles(staged, &StagedClass::eval, &violations);
  return violations;
}

Diagnostics FindViolations(const ScheduledPlan& scheduled, const Graph& model) {
  Diagnostics violations = FindViolations(scheduled.staged, model);
  if (violations.empty()) CheckLists(scheduled, &violations);
  if (!violations.empty()) return violations;
  return FindPlanViolations(DraftOf(scheduled, model), PlanExtent::kActions);
}

Diagnostics FindViolations(const OrderedPlan& ordered, const Graph& model) {
  Diagnostics violations = FindViolations(ordered.staged, model);
  if (violations.empty()) CheckPools(ordered, &violations);
  if (!violations.empty()) return violations;
  const Plan draft = DraftOf(ordered, model);
  violations = FindPlanViolations(draft, PlanExtent::kAll);
  if (!violations.empty()) return violations;
  for (const bool eval : {false, true}) {
    const StepTables tables(draft, eval);
    for (const StepClass& own : tables.classes) {
      CheckTransfers(tables, own, ordered.staged, &violations);
    }
    CheckGroups(tables, &violations);
  }
  return violations;
}

}  // namespace mgc
