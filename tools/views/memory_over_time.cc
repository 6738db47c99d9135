#include "tools/views/memory_over_time.h"

#include <algorithm>
#include <cstddef>

namespace mgc {
namespace {

int64_t TransientOf(const Plan& plan, const std::vector<Call>& calls) {
  int64_t most = 0;
  for (const Call& call : calls) {
    most = std::max(most, plan.segments[static_cast<size_t>(call.segment)].transient_bytes);
  }
  return most;
}

}  // namespace

std::vector<MemorySample> MemoryOverTime(const Plan& plan, const PlanClass& plan_class,
                                         const SimulatedStep& step) {
  const int64_t globals = AlignUp(plan_class.global_bytes);
  std::vector<MemorySample> samples = {{0, 0, globals}};
  int64_t frames = 0;
  size_t next = 0;
  for (const SimulatedSpan& span : step.spans) {
    const bool computes = span.coordinate == plan_class.coordinate && !span.communication;
    if (!computes || next == plan_class.train.compute.size()) continue;
    const ActionRef& ref = plan_class.train.compute[next++].ref;
    const std::vector<Call>& calls = CallsOf(plan, plan_class, /*eval=*/false, ref);
    const int64_t frame = plan_class.chunks[static_cast<size_t>(ref.chunk)].frame_bytes;
    if (ref.kind == ActionKind::kForward) frames += AlignUp(frame);
    samples.push_back({span.begin_ns, frames, globals + TransientOf(plan, calls)});
    if (ref.kind == ActionKind::kBackward) frames -= AlignUp(frame);
    samples.push_back({span.end_ns, frames, globals});
  }
  return samples;
}

}  // namespace mgc
