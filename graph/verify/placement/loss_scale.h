// Where the scale of a loss comes in. In exact numbers a gradient may be multiplied anywhere on its
// way, but it must be scaled before it is rounded; and the rest of the rule (once, and undone
// before the norm; what is stepped and carried on) is the meaning's.
//
// placement_v18: a plan whose backward computes in f16 scales its loss; one that does carries
// kCarriedNames (graph/ir/step_names.h) in every class, each once.
//
// placement_v19: what a micro-batch does reads the scale for the seeds of losses alone: in a
// product of two scalars of f64, the other of them a constant that the same call makes.

#ifndef MGC_GRAPH_VERIFY_PLACEMENT_LOSS_SCALE_H_
#define MGC_GRAPH_VERIFY_PLACEMENT_LOSS_SCALE_H_

#include "graph/base/diagnostic.h"
#include "graph/plan/plan.h"

namespace mgc {

void CheckLossScale(const Plan& plan, Diagnostics* findings);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_PLACEMENT_LOSS_SCALE_H_
