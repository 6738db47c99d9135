// For tests: a plan that uses every field, and passes CheckPlan. It cannot run. It is made by code
// because it tests the readers of plans: one read from a text would lack what they leave out.

#ifndef MGC_GRAPH_PLAN_TESTING_ODD_PLAN_H_
#define MGC_GRAPH_PLAN_TESTING_ODD_PLAN_H_

#include "graph/plan/plan.h"

namespace mgc {

Plan OddPlan();

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_TESTING_ODD_PLAN_H_
