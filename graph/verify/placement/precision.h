// Element types of a plan whose step is computed narrowly (passes/graph/narrow.h). In exact numbers
// a cast is the identity, so the proof of the meaning cannot see where a plan rounds; these rules
// can.
//
// placement_v14: parameters, gradients' sums, moments and values of the whole step are of f32 or
// wider, none is read rounded where f32 is wanted, and all that the update computes with is so
// wide. Of a model that is asked parameters, and what is kept for the next step, may be held in the
// narrow type that they are read in; none of them is widened.
//
// A gradient alone is narrower on its way through a sum over ranks that hold other data, where the
// plan says so (Plan::gradient_sums): rounded for that sum, and widened behind it.
//
// placement_v15: what is never computed narrowly (Precision::kWide) reads and makes nothing narrow.
//
// placement_v16: what joins a gradient's sum is not rounded before: what could have been asked for
// f32 (MayAskForWide) is not widened behind its rounding.
//
// placement_v17: gradients are summed over ranks that hold other data in the type that the plan
// says.

#ifndef MGC_GRAPH_VERIFY_PLACEMENT_PRECISION_H_
#define MGC_GRAPH_VERIFY_PLACEMENT_PRECISION_H_

#include "graph/base/diagnostic.h"
#include "graph/plan/plan.h"

namespace mgc {

// `of_update`: the update calls the segment, or the reductions before it do.
void CheckPrecision(const Plan& plan, const Segment& segment, bool of_update,
                    Diagnostics* findings);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_PLACEMENT_PRECISION_H_
