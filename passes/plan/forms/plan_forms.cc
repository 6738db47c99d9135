#include "passes/plan/forms/plan_forms.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace mgc {

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

int64_t LargestBundle(const std::vector<Segment>& segments, const StagedClass& staged) {
  int64_t bytes = 0;
  for (const StagedStep* step : {&staged.train, &staged.eval}) {
    for (const StagedChunk& chunk : step->chunks) {
      for (const StagedBase base : {StagedBase::kInput, StagedBase::kOutput, StagedBase::kGradInput,
                                    StagedBase::kGradOutput}) {
        bytes = std::max(bytes, BytesBehind(segments, chunk, base));
      }
    }
  }
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
