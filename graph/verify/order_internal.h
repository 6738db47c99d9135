// Parts of graph/verify/order.h that lie in files of their own.

#ifndef MGC_GRAPH_VERIFY_ORDER_INTERNAL_H_
#define MGC_GRAPH_VERIFY_ORDER_INTERNAL_H_

#include <string>

#include "graph/verify/finding.h"
#include "graph/verify/memory_ranges.h"
#include "graph/verify/step_walk_tables.h"
#include "graph/verify/step_walker.h"

namespace mgc {

// `class 3, training`.
std::string PlaceOf(const WalkTables& tables, const WalkClass& walk);

// order_v1, v2, v5: what lists and calls say, each for itself.
void CheckLists(const WalkTables& tables, const Footprints& footprints, Findings* findings);

// order_v3: ranks of a group run the same collectives.
void CheckGroups(const WalkTables& tables, Findings* findings);

// order_v7, v8: slots of collectives while they run; every collective is waited for.
void CheckBusySlots(const WalkTables& tables, Findings* findings);

// order_v4, v6: walks through two steps.
void CheckSteps(const WalkTables& tables, const Footprints& footprints, Findings* findings);

// order_v4: why a walk has stopped before its end.
void ReportDeadlock(const WalkTables& tables, const StepWalker& walker, Findings* findings);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_ORDER_INTERNAL_H_
