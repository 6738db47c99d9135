// Why the neighbours of the plan that a search has found are not the answer.

#ifndef MGC_TOOLS_CLI_WHY_NOT_H_
#define MGC_TOOLS_CLI_WHY_NOT_H_

#include <vector>

#include "passes/search/plans/search_plans.h"
#include "tools/views/found_plans.h"

namespace mgc {

// Of every choice that is not fixed the next values up and down, each compiled with all else as in
// `best`: the first rule that refuses it; else by how much it does not fit, and where; else how
// much slower it is. A neighbour that comes to the same is left out.
std::vector<RejectedPlan> ExplainNeighbours(const SearchRequest& request, const FoundPlan& best);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_WHY_NOT_H_
