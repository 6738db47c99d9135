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
#include <vector>

#include "graph/types/machine.h"
#include "passes/config/check_config.h"
#include "passes/config/parallel_config.h"
#include "passes/search/plans/model_profile.h"

namespace mgc {

struct PlanBound {
  int64_t step_ns = 0;
  int64_t peak_bytes = 0;
  // Of step_ns.
  int64_t pipeline_ns = 0;   // of the busiest rank, bubble included
  int64_t bubble_ns = 0;     // of that: it waits for others to fill and drain
  int64_t reduction_ns = 0;  // sums of gradients and gathers that nothing hides
  int64_t update_ns = 0;
};

// The bound of a configuration that has passed CheckConfig as `checked`.
PlanBound BoundPlan(const ParallelConfig& config, const CheckedConfig& checked,
                    const ModelProfile& profile, const Machine& machine);

// What each stage holds of the profile, stage by stage. Where a profile has one layer that nothing
// cuts, every stage has an even share of it.
std::vector<LayerProfile> ProfilesOfStages(const LayerPlacement& placement,
                                           const ModelProfile& profile);

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_BOUND_PLAN_H_
