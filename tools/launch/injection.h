// Failures on order, for tests of how a run ends: what a rank does at a point of its second step.

#ifndef MGC_TOOLS_LAUNCH_INJECTION_H_
#define MGC_TOOLS_LAUNCH_INJECTION_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/run/step_machine.h"

namespace mgc {

enum class Fault : uint8_t { kKill, kStop, kThrow, kLoop, kSlow, kExit };
enum class FaultPoint : uint8_t {
  kStart,  // before anything is loaded
  kForward,
  kBackward,
  kCollective,
  kTransfer,
  kUpdate,
  kEnd,  // after the last step
};

struct Injection {
  Fault fault = Fault::kKill;
  FaultPoint point = FaultPoint::kStart;
  int64_t rank = 0;
};

// `kill:backward:2`: fault, point, rank. InvalidArgument with what there is.
absl::StatusOr<Injection> ParseInjection(absl::string_view text);

// Fails as told, where that is at `point`, which is outside of steps; in the process of its rank.
void InjectOutside(const Injection& injection, FaultPoint point);

// For StepMachine::Probe. A slow rank takes ten times as long as it needs.
StepMachine::ProbeFn ProbeOf(const Injection& injection);

}  // namespace mgc

#endif  // MGC_TOOLS_LAUNCH_INJECTION_H_
