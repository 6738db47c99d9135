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
      if (IsBoundary(formal.region)) bytes = std::max(bytes, slot.bytes);
    }
  });
  return bytes;
}

int64_t StreamBytes(const StagedPlan& staged) {
  int64_t bytes = 0;
  for (const StagedClass& c : staged.classes) {
    bytes = std::max(bytes, StreamBytes(staged.segments, c));
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
