#include "runtime/comm/all_reduce_library.h"

#include "absl/strings/str_cat.h"

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
  if (mesh.num_axes() <= 1) return absl::OkStatus();  // one group
  const int64_t ranks = map.ranks();
  const int64_t first = map.RanksOf(0).size();
  // The last process has the rest.
  const bool is_even = first * map.processes() == ranks;
  if (is_even && AreBoxes(first, mesh)) return absl::OkStatus();
  const auto is_legal = [&](int64_t processes) {
    return ranks % processes == 0 && AreBoxes(ranks / processes, mesh);
  };
  int64_t below = map.processes();
  while (!is_legal(below)) --below;  // ends at one
  int64_t above = map.processes();
  while (!is_legal(above)) ++above;  // ends at one for each rank
  return absl::InvalidArgumentError(absl::StrCat(
      "--allreduce mpi: ", map.processes(), " processes, the first with ", first,
      " ranks, cut groups of ", mesh.ToString(),
      " in different ways, and copies of a parameter would drift apart [N1]; nearest legal: ",
      below, " or ", above, " processes with as many ranks each, or --allreduce ordered"));
}

}  // namespace mgc
