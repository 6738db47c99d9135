// A plan without the layers that repeat others: the second step towards what is executed to prove a
// plan's meaning, before sizes become small.
//
// Of each run of equal layers within a chunk (equal_layers.h, equal_calls.h) the first two and the
// last stay. Their calls, blocks and names stay as they are; the calls, blocks and parameters of
// the others go, in the model and in all lists. In their place one call of a segment of its own
// takes what the layer before the gap left, forward or backward, to where the layer behind it
// looks.
//
// Of each run of equal chunks (equal_chunks.h), those of a rank and those in the same place of
// neighbouring classes, only the first two and the last keep layers at all. The others keep their
// actions, transfers and collectives over the pipeline; one call takes what each of their actions
// is given, forward or backward, to where it leaves something. Their calls would be those of chunks
// that stay, on blocks of their own layers.

#ifndef MGC_GRAPH_VERIFY_SHRINK_LEAVE_OUT_H_
#define MGC_GRAPH_VERIFY_SHRINK_LEAVE_OUT_H_

#include "graph/plan/plan.h"

namespace mgc {

// `plan` has passed CheckPlan and the checks of placement, order and memory: that what is left out
// does not overlap what stays, and is called in order, is theirs to see. The copy is to be
// executed; what a plan states beside its lists (peaks, stages' layers) is no longer true of it.
Plan WithoutRepeatedLayers(const Plan& plan);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_SHRINK_LEAVE_OUT_H_
