// The instructions of one segment against the ops' factor rules: placement_v1 to placement_v6.

#ifndef MGC_GRAPH_VERIFY_PLACEMENT_PLACEMENT_SEGMENT_H_
#define MGC_GRAPH_VERIFY_PLACEMENT_PLACEMENT_SEGMENT_H_

#include <string>

#include "graph/base/diagnostic.h"
#include "graph/plan/plan.h"
#include "graph/types/sharding.h"

namespace mgc {

// `segment layer.forward, instruction 4 all_gather (models.cc:83:1)`.
std::string PlaceOf(const Plan& plan, const Segment& segment, size_t instr);

// Same element type, sizes and multiples; names of dims do not matter.
bool SameStorage(const TensorType& a, const TensorType& b);

// `of_stage`: called for one layer of one stage, so that sums over `pp` are implied (placement.h);
// otherwise for the whole step, on all stages.
void CheckSegmentPlacement(const Plan& plan, const Segment& segment, bool of_stage,
                           Diagnostics* findings);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_PLACEMENT_PLACEMENT_SEGMENT_H_
