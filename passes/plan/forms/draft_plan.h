// A plan in the making as a plan, as far as it is decided, for whoever reads plans.
//
// What allocate decides is filled in so that nothing stands in another's way: transient slots side
// by side, every region at 0 of an arena without end, boundary slots one behind the other. What a
// pass context says (batches, machine) is 1, or the first that comes.

#ifndef MGC_PASSES_PLAN_FORMS_DRAFT_PLAN_H_
#define MGC_PASSES_PLAN_FORMS_DRAFT_PLAN_H_

#include "graph/ir/graph.h"
#include "graph/plan/plan.h"
#include "passes/plan/forms/plan_forms.h"

namespace mgc {

// Programs are empty. Total: parts that name what does not exist stay as they are.
Plan DraftOf(const StagedPlan& staged, const Graph& model);
// With compute lists. Every action is of a stage of its list's class.
Plan DraftOf(const ScheduledPlan& scheduled, const Graph& model);
// With all lists. As many classes are ordered as staged; slots are in their pools.
Plan DraftOf(const OrderedPlan& ordered, const Graph& model);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_FORMS_DRAFT_PLAN_H_
