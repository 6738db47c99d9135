// Whether a plan's addresses keep apart what is alive at once, and its numbers of bytes are true.
//
// What an action, a segment and the whole step keep is checked here, in the order in which a class
// computes. What comes and goes with transfers depends on the order of several classes:
// graph/verify/order/order.h.

#ifndef MGC_GRAPH_VERIFY_MEMORY_MEMORY_H_
#define MGC_GRAPH_VERIFY_MEMORY_MEMORY_H_

#include "graph/base/diagnostic.h"
#include "graph/plan/plan.h"

namespace mgc {

// Adds what is wrong, labels memory_v*. The plan has passed graph/plan/plan_check.h.
void CheckMemory(const Plan& plan, Diagnostics* findings);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_MEMORY_MEMORY_H_
