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

// The whole answer of a search: text, JSON and page say what stands here, and compute nothing.
struct SearchAnswer {
  std::string model;
  Machine machine;
  FixedChoices fixed;  // by flags
  int64_t budget = 0;  // SearchRequest::budget
  FoundPlans found;    // with at least one plan
  std::vector<RejectedPlan> why_not;
};

// What its page and picture are called.
std::string TitleOf(const SearchAnswer& answer);

// How many plans there were, how many were looked at, and how far the best may be from the fastest.
std::string SearchedText(const SearchAnswer& answer);

// A heading, and a row for each plan: its step, the share of it that each part takes, its peak, its
// flags.
std::vector<std::vector<std::string>> PlanRows(const std::vector<FoundPlan>& plans);

// What a search may choose, as flags: the choices that were left open, or those that were fixed.
std::vector<std::string> ChoicesOf(const FixedChoices& fixed, bool open);

// SearchedText; the ranked plans; the front of time against memory; why the fastest plan's
// neighbours are not the answer.
std::string FoundPlansText(const SearchAnswer& answer);

// {"model", "machine", "device_bytes", "searched": [FLAG], "fixed": [FLAG], "budget", "candidates",
// "refused", "too_large", "profiled", "compiled", "least_bound_ns", "ranked": [PLAN], "front":
// [PLAN], "known": [PLAN], "why_not": [{"change", "why"}]}; a PLAN is {"flags", "step_ns",
// "compute_ns", "exposed_ns", "bubble_ns", "update_ns", "peak", "params", "grads", "states",
// "copies", "frames", "boundaries", "transient", "workspace", "exposed_over": {AXES: ns}}.
std::string FoundPlansJson(const SearchAnswer& answer);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_FOUND_PLANS_H_
