// How little time and memory a plan can take, from its model's profile: bounds that no schedule,
// order or allocation gets below, within a few per cent of what the compiled plan says.
//
//   time    of the busiest pipeline rank: its way in, all its micro-batches, its way out; then what
//           of the gradients' reduction cannot hide, and the update
//   memory  of the fullest pipeline rank: parameters and what belongs to them, frames of all
//           micro-batches in flight, transients and a workspace; slots of boundaries beyond the
//           stream and values of the step are left out
//
// Exact plans are never ranked against bounds (passes/search/plans/search_plans.h): a bound says
// which plan is worth compiling, the plan says what it takes.

#ifndef MGC_PASSES_SEARCH_PLANS_BOUND_PLAN_H_
#define MGC_PASSES_SEARCH_PLANS_BOUND_PLAN_H_

#include <cstdint>

#include "graph/types/machine.h"
#include "passes/search/plans/plan_spread.h"

namespace mgc {

struct PlanBound {
  int64_t step_ns = 0;
  int64_t peak_bytes = 0;
  int64_t held_bytes = 0;  // of the rank that holds most without frames, which layers may save
  // Of step_ns.
  int64_t pipeline_ns = 0;   // of the busiest rank, bubble included
  int64_t bubble_ns = 0;     // of that: it waits for others to fill and drain
  int64_t reduction_ns = 0;  // sums of gradients and gathers that nothing hides
  int64_t update_ns = 0;
};

PlanBound BoundPlan(const PlanSpread& spread, const Machine& machine);

// No step of one chunk a rank takes less, wherever its stages are cut. Rank c's micro-batches, with
// the first one's way through the ranks before it, take at least M t(c) + t(0) + ... + t(c - 1); of
// all ways to share out the same work the longest of these is least where all are equal.
int64_t LeastOverCutsNs(const PlanSpread& spread, const Machine& machine);

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_BOUND_PLAN_H_
