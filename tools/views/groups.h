// Rank groups by Megatron-LM's names, as a report.

#ifndef MGC_TOOLS_VIEWS_GROUPS_H_
#define MGC_TOOLS_VIEWS_GROUPS_H_

#include <string>
#include <vector>

#include "graph/types/mesh.h"
#include "passes/config/rank_groups.h"

namespace mgc {

// One object from kind to list of groups.
std::string GroupsJson(const std::vector<RankGroupKind>& kinds);

// One line for each kind: how many groups of how many ranks, and the groups themselves. Unless
// `all`, a list longer than 80 characters is folded, with nothing lost: `[0-1016 by 8]` is a group
// of ranks that far apart, `4 x ([0-7]) +8` are four groups, each of ranks 8 higher than the one
// before; such lists nest.
std::string GroupsText(const std::vector<RankGroupKind>& kinds, bool all = false);

// Sizes and order of a plan's mesh as flags would say them.
ParallelConfig ConfigOfMesh(const Mesh& mesh);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_GROUPS_H_
