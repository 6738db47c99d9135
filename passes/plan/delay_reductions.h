// Moves the starts of reductions in a last backward behind the calls whose own collectives they
// would hold up: one queue runs them all, in the order of their starts.
//
//   B2 R2 B1 R1 B0 R0   ->   B2 B1 R2 B0 R1 R0
//
// R2 does not end before B1 starts its first collective, but before B0 does. A reduction is started
// where it ends before the next collective that a call waits for is due; those that fit nowhere
// come last, where transfers still go first (passes/plan/order.h). Order, the first to know what
// things cost, runs it and takes the result if the step is no longer for it: what a reduction saves
// beside compute may be more than it costs those that wait.

#ifndef MGC_PASSES_PLAN_DELAY_REDUCTIONS_H_
#define MGC_PASSES_PLAN_DELAY_REDUCTIONS_H_

#include <vector>

#include "graph/plan/plan.h"
#include "passes/plan/forms/plan_forms.h"
#include "passes/plan/time/segment_timer.h"

namespace mgc {

// Of a chunk of the class with this coordinate along pp; whether something was moved.
bool DelayReductions(int coordinate, SegmentTimer* timer, StagedChunk* chunk);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_DELAY_REDUCTIONS_H_
