// The same plan at small sizes: what is executed to prove its meaning.
//
// Layers that repeat others are left out (leave_out.h). Axes but pp shrink to 2 to 4 ranks in a few
// meshes that cover them and their pairs (covering_meshes.h), where there are many of them not all
// at once (drop_axes.h); every dim shrinks to a handful of elements (dim_sizes.h), the step to
// micro-batches 0, 1 and M - 1 (kept_micro_batches.h). Types, attributes, shapes,
// counts and offsets follow anew from the small sizes; addresses and rooms of slots stay those of
// the plan, since what overlaps what is part of its meaning. Stages stay as they are.

#ifndef MGC_GRAPH_VERIFY_SHRINK_SHRINK_H_
#define MGC_GRAPH_VERIFY_SHRINK_SHRINK_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/plan/plan.h"

namespace mgc {

// Refuses a plan that takes too long to execute.
using CheckAffordable = absl::FunctionRef<absl::Status(const Plan& small)>;

// `plan`, whose repeated layers have been left out, on small meshes. In one of them an axis has 3
// ranks, 4 if it leaves a rest of some dim; where no sizes of dims allow that, 2, or else as many
// as in the plan, which may then keep all its sizes. An error, with label meaning_v1, when the
// plan's sizes depend on each other in a way that allows no others, or when all that there are take
// too long.
absl::StatusOr<std::vector<Plan>> SmallPlans(const Plan& plan, CheckAffordable check);

// `plan` on `mesh`, which has the same axes with other sizes; an error as above.
absl::StatusOr<Plan> ShrinkPlan(const Plan& plan, const Mesh& mesh, CheckAffordable check);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_SHRINK_SHRINK_H_
