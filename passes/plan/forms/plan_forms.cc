#include "passes/plan/forms/plan_forms.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mgc {

bool HasBackward(const StagedPlan& staged) {
  return std::any_of(staged.classes.begin(), staged.classes.end(), [](const StagedClass& c) {
    return std::any_of(c.train.chunks.begin(), c.train.chunks.end(),
                       [](const StagedChunk& chunk) { return !chunk.backward.empty(); });
  });
}

bool HasEvaluation(const StagedPlan& staged) {
  return HasBackward(staged) ||
         std::any_of(staged.classes.begin(), staged.classes.end(),
                     [](const StagedClass& c) { return !c.eval.update.empty(); });
}

int64_t StreamBytes(const std::vector<Segment>& segments, const StagedClass& staged) {
  int64_t bytes = 0;
  ForEachCall(staged, [&](const StagedCall& call) {
    const Segment& segment = segments[static_cast<size_t>(call.segment)];
    for (const Slot& slot : segment.slots) {
      const Formal& formal = segment.formals[static_cast<size_t>(slot.formal)];
      if (IsBoundary(formal.region) && formal.block.empty()) bytes = std::max(bytes, slot.bytes);
    }
  });
  return bytes;
}

int64_t BytesBehind(const std::vector<Segment>& segments, const StagedChunk& chunk,
                    StagedBase base) {
  int64_t bytes = 0;
  for (const auto* calls : {&chunk.forward, &chunk.backward}) {
    for (const StagedCall& call : *calls) {
      for (const Slot& slot : segments[static_cast<size_t>(call.segment)].slots) {
        const StagedBinding& binding = call.bindings[static_cast<size_t>(slot.formal)];
        if (binding.base != base) continue;
        bytes = std::max(bytes, binding.offset + slot.offset + slot.bytes);
      }
    }
  }
  return bytes;
}

std::vector<int64_t> SlotBytes(const std::vector<Segment>& segments, const StagedClass& staged,
                               const OrderedClass& ordered) {
  std::vector<int64_t> bytes(static_cast<size_t>(ordered.pool), 0);
  const auto add = [&](const StagedStep& step, const OrderedProgram& program) {
    for (const auto& [base, slot_of] :
         {std::make_pair(StagedBase::kInput, &OrderedAction::input),
          std::make_pair(StagedBase::kOutput, &OrderedAction::output),
          std::make_pair(StagedBase::kGradInput, &OrderedAction::grad_input),
          std::make_pair(StagedBase::kGradOutput, &OrderedAction::grad_output)}) {
      std::vector<int64_t> of_chunk;
      for (const StagedChunk& chunk : step.chunks) {
        of_chunk.push_back(AlignUp(BytesBehind(segments, chunk, base)));
      }
      for (const OrderedAction& action : program.compute) {
        const int64_t slot = action.*slot_of;
        const size_t chunk = static_cast<size_t>(action.ref.chunk);
        if (slot < 0 || chunk >= of_chunk.size()) continue;
        int64_t& most = bytes[static_cast<size_t>(slot)];
        most = std::max(most, of_chunk[chunk]);
      }
    }
  };
  add(staged.train, ordered.train);
  add(staged.eval, ordered.eval);
  return bytes;
}

std::string ToString(const ScheduleAction& action) {
  const char* kind = "?";
  switch (action.kind) {
    case ScheduleActionKind::kForward:
      kind = "F";
      break;
    case ScheduleActionKind::kBackward:
      kind = "B";
      break;
    case ScheduleActionKind::kInputGradient:
      kind = "I";
      break;
    case ScheduleActionKind::kWeightGradient:
      kind = "W";
      break;
  }
  return absl::StrCat(action.stage, kind, action.micro_batch);
}

}  // namespace mgc
