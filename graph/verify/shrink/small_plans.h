// What is executed to prove a plan's meaning: the plan at small sizes (shrink.h), on few ranks.
//
// Layers that repeat others are left out (leave_out.h). Axes but pp shrink to 2 to 4 ranks in a few
// meshes that cover them and their pairs (covering_meshes.h), where there are many of them not all
// at once (drop_axes.h).

#ifndef MGC_GRAPH_VERIFY_SHRINK_SMALL_PLANS_H_
#define MGC_GRAPH_VERIFY_SHRINK_SMALL_PLANS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "graph/plan/plan.h"
#include "graph/verify/shrink/shrink.h"

namespace mgc {

// `plan`, whose repeated layers have been left out, on small meshes. In one of them an axis has 3
// ranks, 4 if it leaves a rest of some dim; where no sizes of dims allow that, 2, or else as many
// as in the plan, which may then keep all its sizes. Errors: those of ShrinkPlan.
absl::StatusOr<std::vector<Plan>> SmallPlans(const Plan& plan, StepWorkOf work);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_SHRINK_SMALL_PLANS_H_
