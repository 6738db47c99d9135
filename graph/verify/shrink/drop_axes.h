// A plan on a mesh that lacks some of its axes, as if each had one rank.

#ifndef MGC_GRAPH_VERIFY_SHRINK_DROP_AXES_H_
#define MGC_GRAPH_VERIFY_SHRINK_DROP_AXES_H_

#include "absl/status/statusor.h"
#include "graph/plan/plan.h"
#include "graph/types/axis.h"

namespace mgc {

// `plan` without the axes `dropped`, pp not among them. They are taken from all shardings;
// collectives over them alone become copies. The other axes keep their sizes, in the order that
// they had; addresses and rooms stay as they are. The plan has passed CheckPlan. An error, with
// label meaning_v1, where a collective over more axes is none over those that are left.
absl::StatusOr<Plan> WithoutAxes(const Plan& plan, AxisSet dropped);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_SHRINK_DROP_AXES_H_
