// How long a plan's step takes and what its ranks hold, from its model's profile: the event
// simulation that orders plans (passes/plan/time/simulate_step.h) runs a draft of the step
// (draft_step.h), queues and transfers included; memory is added up parameter by parameter
// (class_memory.h), and frames are placed along the schedule as allocate places them.
//
// Memory is that of a plan that evaluates nothing but for slots of boundaries, whose number hangs
// on the order of events: the draft's own, and bounds that no order goes beyond. Time is within
// some per cent of the plan's; tests/plan_search/draft_estimate_test.cc prints how far off it is.
// Estimates are no plans, and are compared with estimates only.

#ifndef MGC_PASSES_SEARCH_PLANS_DRAFT_ESTIMATE_H_
#define MGC_PASSES_SEARCH_PLANS_DRAFT_ESTIMATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/plan/plan.h"
#include "graph/types/machine.h"
#include "passes/search/plans/draft_profile.h"
#include "passes/search/plans/estimate_step.h"
#include "passes/search/plans/plan_spread.h"
#include "passes/search/plans/pool_bound.h"

namespace mgc {

// Of a pipeline rank.
struct ClassEstimate {
  MemoryUse memory;  // with `slots` among its boundaries
  int64_t slots = 0;
  PoolBound slots_bound;

  int64_t PeakBytes() const { return memory.peak + memory.workspace; }
};

struct DraftEstimate {
  int64_t step_ns = 0;
  std::vector<ClassEstimate> classes;
  int64_t slot_bytes = 0;

  int64_t PeakBytes() const;       // of the fullest rank
  int64_t LeastPeakBytes() const;  // with as few slots as any order may come to
};

// `spread` is of the draft's profile. FailedPrecondition: a step of centuries [S4]; a model that
// has no layers to cut between, and several stages.
absl::StatusOr<DraftEstimate> EstimateByDraft(const DraftProfile& draft, const PlanSpread& spread,
                                              const Machine& machine, ScheduleCache* schedules);

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_DRAFT_ESTIMATE_H_
