// Whether the steps of a plan come to their end, and nothing is used too early or too late,
// whatever the times.
//
// All lists are taken at full length, two steps after each other without a barrier, training and
// evaluation. Collectives and transfers run by rendezvous, with one queue of communication a rank;
// what one must be over for before something else begins counts only if an explicit wait says so,
// since a backend may have more queues (docs/verify.md, Order).

#ifndef MGC_GRAPH_VERIFY_ORDER_ORDER_H_
#define MGC_GRAPH_VERIFY_ORDER_ORDER_H_

#include "graph/base/diagnostic.h"
#include "graph/plan/plan.h"

namespace mgc {

// Adds what is wrong, labels order_v*. The plan has passed graph/plan/plan_check.h.
void CheckOrder(const Plan& plan, Diagnostics* findings);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_ORDER_ORDER_H_
