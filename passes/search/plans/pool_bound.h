// How many boundary slots the ranks of a plan need, from its schedule alone: inputs that are kept
// for a backward, gradients, and what waits to be sent. What the order of actions
// (passes/plan/order.h) comes to lies between the two numbers, whatever things take.

#ifndef MGC_PASSES_SEARCH_PLANS_POOL_BOUND_H_
#define MGC_PASSES_SEARCH_PLANS_POOL_BOUND_H_

#include <cstdint>
#include <vector>

#include "graph/plan/plan.h"
#include "passes/plan/forms/plan_forms.h"

namespace mgc {

struct PoolBound {
  int64_t least = 0;
  int64_t most = 0;
};

// By pipeline rank. Something crosses every boundary, both ways, and no two neighbouring stages are
// on one rank.
std::vector<PoolBound> BoundPools(const PipelineSchedule& schedule,
                                  const std::vector<StagePlace>& places);

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_POOL_BOUND_H_
