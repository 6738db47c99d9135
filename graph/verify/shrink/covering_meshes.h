// Small sizes of axes that between them show what the axes of a plan do.

#ifndef MGC_GRAPH_VERIFY_SHRINK_COVERING_MESHES_H_
#define MGC_GRAPH_VERIFY_SHRINK_COVERING_MESHES_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace mgc {

// At most so many axes are above 1 in one mesh: two of 3 ranks beside two of 2 are 36 ranks.
inline constexpr size_t kMostAxesAtOnce = 4;

// Ranks of an axis where it is looked at, and where it only has to be there; both above 1.
struct SmallAxis {
  int64_t most = 3;
  int64_t least = 2;
};

// Sizes of all axes, mesh by mesh:
//   every axis has its `most` in one,
//   the two axes of every pair are above 1 together in one,
//   at most kMostAxesAtOnce are above 1 in one,
//   no two axes whose `most` differs from their `least` have the same size in all.
// Where there are no more axes than that, all are above 1 in all. A single axis has both its sizes.
std::vector<std::vector<int64_t>> CoveringMeshes(absl::Span<const SmallAxis> axes,
                                                 absl::Span<const std::pair<int, int>> pairs);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_SHRINK_COVERING_MESHES_H_
