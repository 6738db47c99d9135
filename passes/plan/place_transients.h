// Where the transient slots of a segment lie: those alive together apart, the others in one place,
// and a result in that of an operand that nobody reads any more, where its op allows it.

#ifndef MGC_PASSES_PLAN_PLACE_TRANSIENTS_H_
#define MGC_PASSES_PLAN_PLACE_TRANSIENTS_H_

#include <cstdint>
#include <vector>

#include "graph/plan/plan.h"
#include "passes/plan/transient_lives.h"

namespace mgc {

// Fills the offsets of the segment's transient slots and its transient_bytes.
void PlaceTransients(Segment* segment);

// Places intervals so that those alive together do not overlap; returns their offsets and, in
// `total`, the highest end: seldom more than 10 % above the worst moment (WorstMoment), which no
// placement can go below.
std::vector<int64_t> PackIntervals(const std::vector<Interval>& intervals, int64_t* total);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_PLACE_TRANSIENTS_H_
