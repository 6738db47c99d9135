// For tests: plays a pipeline schedule against its data dependencies. Does it run to its end, how
// long does it take, how long is each rank idle, how many activations does it hold?
//
// The model has no contention: an action starts when the one before it on its rank has ended and
// its inputs have arrived; a transfer between ranks takes a fixed time and occupies nobody. Time is
// an integer (nanoseconds, or any unit), so results do not depend on the order of additions.

#ifndef MGC_PASSES_PLAN_TESTING_SIMULATE_SCHEDULE_H_
#define MGC_PASSES_PLAN_TESTING_SIMULATE_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/plan/schedule.h"

namespace mgc {

struct StageCost {
  int64_t forward = 0;
  int64_t input_gradient = 0;
  int64_t weight_gradient = 0;  // a whole backward takes both
};

struct ScheduleCosts {
  std::vector<StageCost> stages;  // pp * vp of them
  int64_t transfer = 0;           // between two ranks; within a rank 0
};

struct PipelineRankTiming {
  std::vector<int64_t> starts;  // one per action of its list
  int64_t busy = 0;
  int64_t bubble = 0;  // makespan - busy
  // Forwards of any stage of this rank whose backward (its W where it is split) has not yet ended,
  // at most at one time; each counts one chunk's activations for one micro-batch.
  int64_t peak_activations = 0;
};

struct ScheduleTiming {
  int64_t makespan = 0;
  std::vector<PipelineRankTiming> pipeline_ranks;
};

// InvalidArgument when the schedule is not one: an action out of range or on the wrong rank, twice,
// or missing; costs of the wrong number, or negative. FailedPrecondition, naming the action at
// which each rank waits, when the order can never finish.
absl::StatusOr<ScheduleTiming> SimulateSchedule(const PipelineSchedule& schedule,
                                                const ScheduleCosts& costs);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_TESTING_SIMULATE_SCHEDULE_H_
