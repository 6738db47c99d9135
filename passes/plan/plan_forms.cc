#include "passes/plan/plan_forms.h"

#include <algorithm>

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

}  // namespace mgc
