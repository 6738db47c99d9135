// A plan made by hand, small enough to count: tp 2, dp 2, pp 2, one layer on each of two stages,
// four micro-batches under 1f1b. It is enough of a plan to be looked at, not to be run: it has no
// bindings, addresses or bytes of blocks. As a text it would need them, which no view of it shows,
// for each of the numbers of layers that are drawn.

#ifndef MGC_TOOLS_VIEWS_TESTING_SMALL_PLAN_H_
#define MGC_TOOLS_VIEWS_TESTING_SMALL_PLAN_H_

#include "graph/plan/plan.h"

namespace mgc {

// Activations are f32[batch=2, seq=8, embed=16] (1024 bytes); weights of a layer f32[embed=16,
// mlp=64], cut over tp. With `layers` above 2, each stage holds half of them.
Plan SmallPlan(int layers = 2);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_TESTING_SMALL_PLAN_H_
