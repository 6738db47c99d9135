// For tests: a plan that uses every field, and passes CheckPlan. It cannot run.

#ifndef MGC_GRAPH_PLAN_TESTING_ODD_PLAN_H_
#define MGC_GRAPH_PLAN_TESTING_ODD_PLAN_H_

#include "graph/plan/plan.h"

namespace mgc {

Plan OddPlan();

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_TESTING_ODD_PLAN_H_
