#include "runtime/comm/all_reduce_library.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mgc {
namespace {

// Whether runs of `ranks` neighbours are boxes: all of some first axes, and equal parts of the
// next.
bool AreBoxes(int64_t ranks, const Mesh& mesh) {
  for (const MeshAxis& axis : mesh.axes()) {
    if (ranks % axis.size != 0) return axis.size % ranks == 0;
    ranks /= axis.size;
  }
  return ranks == 1;
}

}  // namespace

absl::Status CheckLibraryServes(const ProcessMap& map, const Mesh& mesh) {
  const int64_t ranks = map.RanksOf(0).size();
  // The last process has the rest.
  const bool is_even = ranks * map.processes() == map.ranks();
  if (is_even && AreBoxes(ranks, mesh)) return absl::OkStatus();
  std::vector<int64_t> legal;
  for (int64_t each = map.ranks(); each >= 1; --each) {
    if (map.ranks() % each == 0 && AreBoxes(each, mesh)) legal.push_back(map.ranks() / each);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--allreduce mpi: ", map.processes(), " processes, the first of ", ranks,
                   " ranks, cut groups of ", mesh.ToString(),
                   " in different ways, and copies of a parameter would drift apart [N1]; legal: "
                   "--allreduce ordered, or as many processes as one of ",
                   absl::StrJoin(legal, ", "), " with as many ranks each"));
}

}  // namespace mgc
