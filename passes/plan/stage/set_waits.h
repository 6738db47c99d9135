// What the calls of a class wait for: collectives that calls before them have left running.
//
//   prepare   gather A, gather B
//   forward   A (running 1), B (running 0)          each waits for its own copies alone
//
//   forward   gather A, gather B, A (running 1), gather C, B (running 1), ...
//
// Behind the making of calls, since what may still run depends on all that stands before a call.

#ifndef MGC_PASSES_PLAN_STAGE_SET_WAITS_H_
#define MGC_PASSES_PLAN_STAGE_SET_WAITS_H_

#include <vector>

#include "passes/plan/forms/plan_forms.h"
#include "passes/plan/stage/fold_segments.h"

namespace mgc {

// Collectives that the call's segment starts and does not wait for.
int64_t BackgroundStartsOf(const SegmentFolder& folder, const StagedCall& call);

// Sets StagedCall::running. All copies of the class are asked for before its first forward: a call
// waits for the latest of those that it reads, where no call of the chunk before it has. A call
// that works in turn with its neighbours waits for the latest collective that a call of its layer
// before it in the list has left running. `chunks` are all those of the class.
void SetWaits(const SegmentFolder& folder, int num_layers, std::vector<StagedChunk>* chunks);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_STAGE_SET_WAITS_H_
