// What a rank of a plan holds, as passes/plan/allocate.h lays it out, from its model's profile:
// each parameter with what belongs to it, in pieces where ZeRO cuts it.
//
// Exact but for frames and boundaries, which hang on the order of actions, where gradients are
// summed in the type of their parameters, and no two layers but embedding and head have one in
// common.

#ifndef MGC_PASSES_SEARCH_PLANS_CLASS_MEMORY_H_
#define MGC_PASSES_SEARCH_PLANS_CLASS_MEMORY_H_

#include <cstddef>

#include "graph/plan/plan.h"
#include "passes/search/plans/draft_profile.h"
#include "passes/search/plans/plan_spread.h"

namespace mgc {

// Of a pipeline rank; frames are zero, boundaries those between layers, and the peak is not filled.
// `spread` is of the draft's profile.
MemoryUse ClassMemory(const DraftProfile& draft, const PlanSpread& spread, size_t rank);

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_CLASS_MEMORY_H_
