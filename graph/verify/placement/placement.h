// Proof that every value of a plan is laid out as it must be.
//
// Per mesh axis a value is whole, cut, or owed as a sum or a maximum. From the shardings of loads,
// parameters and optimizer state everything else follows by the ops' factor rules; a plan's slots
// state it, and this derives it anew:
//
//   instructions  each segment once: results follow from operands (graph/ir/check_op_sharding.h)
//   memory        what is read at an address is what was last written there, of the same type and
//                 sharding: through frames, links between layers, stage boundaries, accumulators,
//                 parameters, values of the whole step
//   ends          the update leaves every parameter, moment and gradient in its own sharding;
//                 reports owe nothing
//
// Sums over stages have no collective inside a layer: a value that one stage makes is a sum owed
// over `pp` to which the others add zero. So each must be made by exactly one stage.
//
// Not seen: values that are wrong with the right sharding (a wrong constant, a wrong count, the
// wrong one of two tensors of one type). Those are for the proof of the meaning.

#ifndef MGC_GRAPH_VERIFY_PLACEMENT_PLACEMENT_H_
#define MGC_GRAPH_VERIFY_PLACEMENT_PLACEMENT_H_

#include "graph/base/diagnostic.h"
#include "graph/plan/plan.h"

namespace mgc {

// Adds findings placement_v1, placement_v2, ... (docs/verify.md). The plan has passed
// graph/plan/plan_check.h. Time grows with calls times instructions and with actions, not with
// ranks.
void CheckPlacement(const Plan& plan, Diagnostics* findings);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_PLACEMENT_PLACEMENT_H_
