// Pipeline schedules as list builders: for every pipeline rank, the order in which it runs the
// forward and backward segments of its chunks.
//
//   1f1b, pp 2, 2 micro-batches   ->   rank 0: 0F0 0F1 0B0 0B1
//                                      rank 1: 1F0 1B0 1F1 1B1
//
// A stage is a *virtual* stage: with pp ranks and vp chunks per rank there are pp * vp of them,
// which live where the loop places them (LoopPlaces, passes/config/place_layers.h). Orders follow
// Megatron-LM's schedules.py:
//   gpipe        all forwards, then all backwards;
//   1f1b         min(pp - 1 - rank, M) forwards, then forward/backward pairs, then backwards;
//   interleaved  micro-batches in groups of g; a group runs through all chunks of a rank before the
//                next one starts; 2 (pp - 1 - rank) + (vp - 1) g forwards before the first pair.
// In each of them every stage sees micro-batches ascending, forward and backward, so that gradients
// accumulate in one order whatever the schedule. Runs after stage, which has cut the stages, and
// before order, which needs to know what every rank computes next to say what communicates when.

#ifndef MGC_PASSES_PLAN_SCHEDULE_H_
#define MGC_PASSES_PLAN_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/config/schedule_spec.h"

namespace mgc {

enum class ScheduleActionKind : uint8_t {
  kForward,         // F
  kBackward,        // B = I and W in one
  kInputGradient,   // I
  kWeightGradient,  // W
};

struct ScheduleAction {
  int32_t stage = 0;
  ScheduleActionKind kind = ScheduleActionKind::kForward;
  int32_t micro_batch = 0;
};

inline bool operator==(const ScheduleAction& a, const ScheduleAction& b) {
  return a.stage == b.stage && a.kind == b.kind && a.micro_batch == b.micro_batch;
}

struct PipelineSchedule {
  int64_t pp = 1;
  int64_t vp = 1;
  int64_t micro_batches = 1;
  std::vector<std::vector<ScheduleAction>> ranks;  // one list per pipeline rank, in order
};

// The schedule of a spec; InvalidArgument with all violations in the message if there are any.
absl::StatusOr<PipelineSchedule> BuildSchedule(const ScheduleSpec& spec);

// PyTorch's words for an action, `<stage><kind><micro-batch>`: `0F3`, `2B1`.
std::string ToString(const ScheduleAction& action);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_SCHEDULE_H_
