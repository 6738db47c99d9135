#include "runtime/comm/shared_regions.h"

#include "graph/base/status.h"

namespace mgc {

bool ReachesOthers(const SharedRegions& regions, int self) {
  for (int p = 0; p < regions.processes(); ++p) {
    if (p != self && regions.Reaches(p)) return true;
  }
  return false;
}

absl::StatusOr<RegionBases> BasesOf(SharedRegions& regions, int self) {
  RegionBases bases;
  if (!ReachesOthers(regions, self)) return bases;
  bases.resize(static_cast<size_t>(regions.processes()));
  for (int p = 0; p < regions.processes(); ++p) {
    if (!regions.Reaches(p)) continue;
    MGC_ASSIGN_OR_RETURN(bases[static_cast<size_t>(p)], regions.Of(p));
  }
  return bases;
}

}  // namespace mgc
