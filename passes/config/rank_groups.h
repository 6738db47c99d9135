// The communication groups of a training job by Megatron's names, from sizes and an order string.
//
// Follows Megatron's RankGenerator (megatron/core/parallel_state.py): the dense layers see the grid
// (tp, cp, dp, pp), experts see another grid over the same ranks (etp, ep, expert-dp, pp) in the
// same order, and both must agree on the pipeline groups.

#ifndef MGC_PASSES_CONFIG_RANK_GROUPS_H_
#define MGC_PASSES_CONFIG_RANK_GROUPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/diagnostic.h"
#include "graph/types/mesh.h"
#include "passes/config/parallel_config.h"

namespace mgc {

struct RankGroupKind {
  std::string name;
  std::vector<std::vector<int64_t>> groups;
};

// InvalidArgument unless `order` names axes out of tp, cp, ep, dp, pp, joined by '-', each at most
// once. The message quotes the order as it is, for whoever prints it to escape.
absl::Status CheckAxisOrder(absl::string_view order);

// Everything that forbids the groups: G1 (world over tp * pp * cp), G3 (an axis above 1 missing
// from the order) and, only when ep > 1, the expert grid's G2, G5, G6. Sizes are at least 1 and the
// order passes CheckAxisOrder; what does not is reported as G0. G4 cannot happen: the grids are
// separate.
Diagnostics CheckRankGroups(const ParallelConfig& config);

// The dense layers' mesh: axes in the configuration's order. InvalidArgument with all violations.
absl::StatusOr<Mesh> DenseMesh(const ParallelConfig& config);

// The kinds tp, cp, dp, pp, tp-cp, tp-dp, tp-pp, dp-cp, tp-dp-cp, embedding (first and last rank of
// each pp group, one rank where pp = 1), position-embedding (first), in this order. InvalidArgument
// with all violations in the message when there are any.
absl::StatusOr<std::vector<RankGroupKind>> BuildRankGroups(const ParallelConfig& config);

}  // namespace mgc

#endif  // MGC_PASSES_CONFIG_RANK_GROUPS_H_
