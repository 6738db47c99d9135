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

// A value that a stage copies from where it has it to where the next one takes it.
struct HandedValue {
  ValueId value = kNone;
  ValuePlace from;
  ValuePlace to;
};

// A segment that hands values on unchanged, at least one: what passes through a stage, and what a
// stage sends and keeps.
Segment RelaySegment(const Graph& graph, const std::vector<HandedValue>& values, Phase phase);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_STAGE_BUILD_SEGMENT_H_
