// Parts of graph/verify/order/order.h that lie in files of their own.

#ifndef MGC_GRAPH_VERIFY_ORDER_ORDER_INTERNAL_H_
#define MGC_GRAPH_VERIFY_ORDER_ORDER_INTERNAL_H_

#include <string>

#include "graph/base/diagnostic.h"
#include "graph/plan/step_tables.h"
#include "graph/plan/step_walker.h"
#include "graph/verify/common/memory_ranges.h"

namespace mgc {

// `class 3, training`.
std::string PlaceOf(const StepTables& tables, const StepClass& walk);
// `layer 3`, `the embedding`, `no layer`.
std::string NameOfLayer(int layer);

// order_v1, v2, v5: what lists and calls say, each for itself.
void CheckLists(const StepTables& tables, const Footprints& footprints, Diagnostics* findings);

// order_v1: what layers take in turn.
void CheckTurns(const StepTables& tables, Diagnostics* findings);

// order_v3: ranks of a group run the same collectives.
void CheckGroups(const StepTables& tables, Diagnostics* findings);

// order_v7, v8: slots of collectives while they run; every collective is waited for.
void CheckBusySlots(const StepTables& tables, Diagnostics* findings);

// order_v4, v6: walks through two steps.
void CheckSteps(const StepTables& tables, const Footprints& footprints, Diagnostics* findings);

// order_v4: why a walk has stopped before its end.
void ReportDeadlock(const StepTables& tables, const StepWalker& walker, Diagnostics* findings);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_ORDER_ORDER_INTERNAL_H_
