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

// One line for each kind: how many groups of how many ranks, and the groups themselves, the first
// `max_groups` of them.
std::string GroupsText(const std::vector<RankGroupKind>& kinds, int max_groups = 16);

// Sizes and order of a plan's mesh as flags would say them.
ParallelConfig ConfigOfMesh(const Mesh& mesh);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_GROUPS_H_
