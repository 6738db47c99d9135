// Does a plan fit, how long is a step, and what would help?

#ifndef MGC_TOOLS_ADVICE_ESTIMATE_PLAN_H_
#define MGC_TOOLS_ADVICE_ESTIMATE_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/search/plans/search_plans.h"

namespace mgc {

// A change that makes a plan fit.
struct PlanFix {
  std::string change;  // as flags
  FoundPlan plan;
};

struct PlanEstimate {
  FoundPlan plan;
  std::string fullest;         // where it needs most: WhereFullest
  std::vector<PlanFix> fixes;  // of one that does not fit: up to three, the fastest first
};

// Compiles request.options.parallel, and where it does not fit all its neighbours. None is proved.
// Errors: those of Compile.
absl::StatusOr<PlanEstimate> EstimatePlan(const SearchRequest& request);

// `fits: 20.1 GiB of 80.0 GiB, ...`, or by how much it does not, and the fixes with their steps.
std::string EstimateText(const PlanEstimate& estimate, const Machine& machine);

// {"fits", "step_ns", "peak", "device_bytes", "fullest", "fixes": [{"change", "step_ns", "peak"}]}
std::string EstimateJson(const PlanEstimate& estimate, const Machine& machine);

}  // namespace mgc

#endif  // MGC_TOOLS_ADVICE_ESTIMATE_PLAN_H_
