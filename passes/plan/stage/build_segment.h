// Turns the nodes of one part into a segment: slots, instructions, starts and waits of collectives.

#ifndef MGC_PASSES_PLAN_STAGE_BUILD_SEGMENT_H_
#define MGC_PASSES_PLAN_STAGE_BUILD_SEGMENT_H_

#include <functional>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/plan/plan.h"
#include "passes/plan/stage/parts.h"
#include "passes/plan/stage/slot_table.h"
#include "passes/plan/stage/value_places.h"

namespace mgc {

// `nodes` in program order, all of one part. Slots that die with the segment get the transient
// formal and no offset yet.
Segment BuildSegment(const SegmentContext& context, const Part& part,
                     const std::vector<NodeId>& nodes);

// A segment that hands the residual stream on unchanged, for a chunk without layers.
Segment RelaySegment(const Graph& graph, ValueId stream, bool backward);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_STAGE_BUILD_SEGMENT_H_
