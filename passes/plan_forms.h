// What a plan is between stage and allocate: each pass adds what it decides.

#ifndef MGC_PASSES_PLAN_FORMS_H_
#define MGC_PASSES_PLAN_FORMS_H_

#include <cstdint>
#include <vector>

#include "graph/plan.h"
#include "passes/schedule.h"

namespace mgc {

// After stage: segments, blocks and chunks. Bindings hold offsets relative to their region.
struct StagedPlan {
  Plan plan;
};

// After schedule: also which forward and backward runs when.
struct ScheduledPlan {
  StagedPlan staged;
  PipelineSchedule schedule;
};

// After order: also the lists of every class. Addresses of actions and transfers are numbers of
// boundary slots.
struct OrderedPlan {
  Plan plan;
  std::vector<int> pools;  // boundary slots of each class
};

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_FORMS_H_
