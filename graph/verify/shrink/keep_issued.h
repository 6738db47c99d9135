// What counts collectives, in a plan from which some have been taken out.

#ifndef MGC_GRAPH_VERIFY_SHRINK_KEEP_ISSUED_H_
#define MGC_GRAPH_VERIFY_SHRINK_KEEP_ISSUED_H_

#include "absl/functional/function_ref.h"
#include "graph/plan/plan.h"

namespace mgc {

// Whether a collective of a call stays, of those that its segment starts the one number `start`.
using StaysIn = absl::FunctionRef<bool(const Call& call, int start)>;

// Transfers stand behind as many collectives of their anchors as there still are, and calls let as
// many run on as there still are of those that they did. `rank_class` has the lists of `plan`.
void KeepIssued(const Plan& plan, StaysIn stays, PlanClass* rank_class);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_SHRINK_KEEP_ISSUED_H_
