// Whether a plan in the making is what its level asks for (passes/plan/forms/plan_forms.h): what
// every staged, scheduled or ordered plan keeps, and the next pass may rely on. The runner of
// passes applies it behind every pass, as graph/ir/check.h to graphs.
//
// What a plan keeps, a plan in the making keeps as far as it is decided: labels plan_c... of
// graph/plan/plan_check.h. Besides, docs/plan.md:
//   staged_c1  what allocate decides is not decided yet
//   staged_c2  every formal of a call finds its memory
//   staged_c3  a slot lies inside its region
//   staged_c4  scalars, reports and what is zeroed lie inside the globals
//   staged_c5  a stage takes all that its neighbour leaves
//   scheduled_c1  a class runs forwards and backwards of its own stages
//   ordered_c1  boundary slots are of the class' pool
//   ordered_c2  a transfer moves a boundary, from or to where its action has it
//   ordered_c3  a transfer stands behind no more collectives than its anchor starts
//   ordered_c4  collectives between classes run in one order on all of them

#ifndef MGC_PASSES_PLAN_FORMS_CHECK_FORMS_H_
#define MGC_PASSES_PLAN_FORMS_CHECK_FORMS_H_

#include "graph/base/diagnostic.h"
#include "graph/ir/graph.h"
#include "passes/plan/forms/plan_forms.h"

namespace mgc {

// All violations; `model` is what the plan is of. What depends on a violated constraint may be left
// unchecked.
Diagnostics FindViolations(const StagedPlan& staged, const Graph& model);
Diagnostics FindViolations(const ScheduledPlan& scheduled, const Graph& model);
Diagnostics FindViolations(const OrderedPlan& ordered, const Graph& model);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_FORMS_CHECK_FORMS_H_
