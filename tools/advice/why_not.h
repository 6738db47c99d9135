// Why the neighbours of the plan that a search has found are not the answer.

#ifndef MGC_TOOLS_ADVICE_WHY_NOT_H_
#define MGC_TOOLS_ADVICE_WHY_NOT_H_

#include <string>
#include <vector>

#include "passes/search/plans/search_plans.h"
#include "tools/views/found_plans.h"

namespace mgc {

// Where a plan needs most, `31.2 GiB of 24.0 GiB, pipeline rank 1 at head.backward matmul, 3B0`.
std::string WhereFullest(const Plan& plan, int64_t memory);

// Of the fastest plan's neighbours, compiled where the search has not: the first rule that refuses
// it; else by how much it does not fit, and where; else how much slower it is. A neighbour that
// comes to the same is left out.
std::vector<RejectedPlan> ExplainNeighbours(const SearchRequest& request, const FoundPlans& found);

}  // namespace mgc

#endif  // MGC_TOOLS_ADVICE_WHY_NOT_H_
