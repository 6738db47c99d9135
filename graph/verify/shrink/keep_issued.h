// Transfers of a plan from which collectives have been taken out.

#ifndef MGC_GRAPH_VERIFY_SHRINK_KEEP_ISSUED_H_
#define MGC_GRAPH_VERIFY_SHRINK_KEEP_ISSUED_H_

#include "absl/functional/function_ref.h"
#include "graph/plan/plan.h"

namespace mgc {

// Transfers stand behind as many collectives of their anchors as there still are. `kept`: how many
// of the first `issued` collectives of a call stay. `rank_class` has the lists as they were.
void KeepIssued(const Plan& plan, absl::FunctionRef<int(const Call& call, int issued)> kept,
                PlanClass* rank_class);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_SHRINK_KEEP_ISSUED_H_
