#include "graph/verify/common/memory_ranges.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace mgc {

std::string ToString(const Range& range) {
  return absl::StrCat("[", range.begin, ", ", range.end, ")");
}

std::vector<Range> Merged(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  std::vector<Range> merged;
  for (const Range& range : ranges) {
    if (range.begin >= range.end) continue;
    if (!merged.empty() && range.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, range.end);
    } else {
      merged.push_back(range);
    }
  }
  return merged;
}

bool Touches(const std::vector<Range>& merged, const Range& range) {
  const auto it = std::upper_bound(merged.begin(), merged.end(), range.begin,
                                   [](int64_t at, const Range& other) { return at < other.end; });
  return it != merged.end() && it->begin < range.end;
}

int64_t BaseOf(BaseKind base, const Action& action) {
  switch (base) {
    case BaseKind::kAbsolute:
      return 0;
    case BaseKind::kFrame:
      return action.frame;
    case BaseKind::kInput:
      return action.input;
    case BaseKind::kOutput:
      return action.output;
    case BaseKind::kGradInput:
      return action.grad_input;
    case BaseKind::kGradOutput:
      return action.grad_output;
  }
  return -1;
}

Range RangeOf(const Slot& slot, const Call& call, const Action& action) {
  const Binding& binding = call.bindings[static_cast<size_t>(slot.formal)];
  const int64_t begin = BaseOf(binding.base, action) + binding.offset + slot.offset;
  return {begin, begin + slot.bytes};
}

Footprints::Footprints(const Plan& plan) {
  for (const Segment& segment : plan.segments) {
    std::vector<std::vector<Range>> ranges(segment.formals.size());
    for (const Instr& instr : segment.instrs) {
      for (const std::vector<int>* list : {&instr.inputs, &instr.outputs}) {
        for (int number : *list) {
          const Slot& slot = segment.slots[static_cast<size_t>(number)];
          ranges[static_cast<size_t>(slot.formal)].push_back(
              {slot.offset, slot.offset + slot.bytes});
        }
      }
    }
    for (std::vector<Range>& list : ranges) list = Merged(std::move(list));
    segments_.push_back(std::move(ranges));
  }
}

Footprint Footprints::Of(const std::vector<Call>& calls) const {
  Footprint footprint;
  for (const Call& call : calls) {
    const std::vector<std::vector<Range>>& formals = segments_[static_cast<size_t>(call.segment)];
    for (size_t f = 0; f < formals.size(); ++f) {
      const Binding& binding = call.bindings[f];
      for (const Range& range : formals[f]) {
        footprint.of[static_cast<int>(binding.base)].push_back(
            {binding.offset + range.begin, binding.offset + range.end});
      }
    }
  }
  for (std::vector<Range>& list : footprint.of) list = Merged(std::move(list));
  return footprint;
}

std::string TooLong(const StepTables& tables) {
  constexpr int64_t kMostCollectives = int64_t{1} << 27;  // of a step, all classes
  constexpr int64_t kMostOperands = int64_t{1} << 26;     // of a step with one micro-batch
  std::vector<int64_t> operands;
  for (const Segment& segment : tables.plan.segments) {
    operands.push_back(1);
    for (const Instr& instr : segment.instrs) {
      operands.back() += static_cast<int64_t>(1 + instr.inputs.size() + instr.outputs.size());
    }
  }
  int64_t collectives = 0;
  int64_t all = 0;
  for (const StepClass& walk : tables.classes) {
    collectives += walk.num_collectives + static_cast<int64_t>(walk.actions.size());
    for (const StepAction* action : ProjectedActions(tables, walk)) {
      for (const Call& call : *action->calls) all += operands[static_cast<size_t>(call.segment)];
      if (all > kMostOperands) break;
    }
  }
  if (collectives > kMostCollectives) {
    return absl::StrCat("a step has ", collectives, " actions and collectives");
  }
  return all > kMostOperands ? "the instructions of a micro-batch are too many" : "";
}

std::vector<Range> HandedOver(const StepTables& tables, const StepClass& walk) {
  std::vector<Range> ranges;
  for (const StepAction& at : walk.actions) {
    const Action& action = *at.action;
    if (!NeighbourInPlace(tables.plan.stages, *walk.chunks, action.ref, true)) continue;
    const BaseKind base =
        action.ref.kind == ActionKind::kForward ? BaseKind::kOutput : BaseKind::kGradOutput;
    int64_t end = 0;
    for (const Call& call : *at.calls) {
      for (const Slot& slot : tables.plan.segments[static_cast<size_t>(call.segment)].slots) {
        if (call.bindings[static_cast<size_t>(slot.formal)].base != base) continue;
        end = std::max(end, RangeOf(slot, call, action).end);
      }
    }
    ranges.push_back({BaseOf(base, action), end});
  }
  return Merged(std::move(ranges));
}

std::vector<const StepAction*> ProjectedActions(const StepTables& tables, const StepClass& walk) {
  std::vector<const StepAction*> projected;
  for (const StepAction& action : walk.actions) {
    const ActionRef& ref = action.action->ref;
    if (IsOfMicroBatch(ref.kind) && ref.micro_batch != tables.plan.num_micro_batches - 1) continue;
    projected.push_back(&action);
  }
  return projected;
}

}  // namespace mgc
