// From the schedule of a class to its compute list.
//
//   0F0 0F1 0B0 0B1   ->   0P0 0F0 0F1 0B0 0B1 U

#ifndef MGC_PASSES_PLAN_FORMS_COMPUTE_LIST_H_
#define MGC_PASSES_PLAN_FORMS_COMPUTE_LIST_H_

#include <cstdint>
#include <vector>

#include "graph/plan/plan.h"
#include "passes/plan/forms/plan_forms.h"

namespace mgc {

// The compute list of one class: the making of working copies where chunks have any, the schedule's
// actions, the update; without `backward` no backwards. Actions are of the class' own stages.
std::vector<OrderedAction> ComputeList(const std::vector<ScheduleAction>& actions,
                                       const std::vector<StagePlace>& stages,
                                       const std::vector<StagedChunk>& chunks, bool backward);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_FORMS_COMPUTE_LIST_H_
