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

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "passes/config/schedule_spec.h"
#include "passes/plan/forms/plan_forms.h"

namespace mgc {

// The schedule of a spec; InvalidArgument with all violations in the message if there are any.
absl::StatusOr<PipelineSchedule> BuildSchedule(const ScheduleSpec& spec);

// A schedule without rounds from its middle, where each does the same as the one before.
struct ShorterSchedule {
  PipelineSchedule schedule;
  int64_t round = 0;     // micro-batches of one
  int64_t left_out = 0;  // rounds
};

// Nothing where a schedule has too few rounds to leave some out, or no rounds: of gpipe all
// micro-batches are in flight at once. A round is a group of micro-batches (interleaved) or one for
// each rank. For a spec that BuildSchedule takes.
absl::optional<ShorterSchedule> LeaveOutRounds(const ScheduleSpec& spec);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_SCHEDULE_H_
