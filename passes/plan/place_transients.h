// Where the transient slots of a segment lie: those alive together apart, the others in one place.

#ifndef MGC_PASSES_PLAN_PLACE_TRANSIENTS_H_
#define MGC_PASSES_PLAN_PLACE_TRANSIENTS_H_

#include <cstdint>
#include <vector>

#include "graph/plan/plan.h"

namespace mgc {

// Fills the offsets of the segment's transient slots and its transient_bytes.
void PlaceTransients(Segment* segment);

// Places intervals [begin, end] with sizes so that those alive together do not overlap; returns
// their offsets and, in `total`, the highest end.
struct Interval {
  int begin = 0;
  int end = 0;  // inclusive
  int64_t bytes = 0;
};
std::vector<int64_t> PackIntervals(const std::vector<Interval>& intervals, int64_t* total);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_PLACE_TRANSIENTS_H_
