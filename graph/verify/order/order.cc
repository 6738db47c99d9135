#include "graph/verify/order/order.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "graph/verify/order/order_internal.h"

namespace mgc {

std::string PlaceOf(const StepTables& tables, const StepClass& walk) {
  return absl::StrCat("class ", walk.plan_class->coordinate,
                      tables.eval ? ", evaluation" : ", training");
}

std::string NameOfLayer(int layer) {
  if (layer == kNoLayer) return "no layer";
  return layer == kEmbeddingLayer ? "the embedding" : absl::StrCat("layer ", layer);
}

void CheckOrder(const Plan& plan, Diagnostics* findings) {
  for (const bool eval : {false, true}) {
    if (eval && !HasEvaluation(plan)) continue;
    const StepTables tables(plan, eval);
    const std::string too_long = TooLong(tables);
    if (!too_long.empty()) {
      findings->Add("order_v9", eval ? "evaluation" : "training", too_long);
      continue;
    }
    const Footprints footprints(plan);
    CheckLists(tables, footprints, findings);
    CheckTurns(tables, findings);
    CheckGroups(tables, findings);
    CheckBusySlots(tables, findings);
    CheckSteps(tables, footprints, findings);
  }
}

}  // namespace mgc
