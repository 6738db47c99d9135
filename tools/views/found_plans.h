// What a search for a plan has found (passes/search/plans/search_plans.h).

#ifndef MGC_TOOLS_VIEWS_FOUND_PLANS_H_
#define MGC_TOOLS_VIEWS_FOUND_PLANS_H_

#include <string>
#include <vector>

#include "graph/types/machine.h"
#include "passes/search/plans/search_plans.h"

namespace mgc {

// A neighbour of the answer, and the one constraint that rules it out.
struct RejectedPlan {
  std::string change;  // as flags: `--tp 16`
  std::string why;     // `12 heads are not divisible by tp 16 [M1]`, `2.1 % slower`
};

// How many plans there were and how many were looked at; a row for each ranked plan with the share
// of its step that each part takes, and its flags; the front of time against memory; why the
// fastest plan's neighbours are not the answer.
std::string FoundPlansText(const FoundPlans& found, const std::vector<RejectedPlan>& why_not,
                           const Machine& machine);

// {"machine", "device_bytes", "candidates", "refused", "too_large", "profiled", "compiled",
// "least_bound_ns", "ranked": [PLAN], "front": [PLAN], "why_not": [{"change", "why"}]}; a PLAN is
// {"flags", "step_ns", "compute_ns", "exposed_ns", "bubble_ns", "update_ns", "peak", "params",
// "grads", "states", "copies", "frames", "boundaries", "transient", "workspace"}.
std::string FoundPlansJson(const FoundPlans& found, const std::vector<RejectedPlan>& why_not,
                           const Machine& machine);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_FOUND_PLANS_H_
