// Plans as other systems would run them, to be timed: their lists and segments are sound, but the
// addresses in them no longer mean anything.

#ifndef MGC_TESTS_PLAN_FORMS_REWRITTEN_PLANS_H_
#define MGC_TESTS_PLAN_FORMS_REWRITTEN_PLANS_H_

#include "graph/plan/plan.h"

namespace mgc {

// The plan with no collective beside compute: each is waited for where it starts, copies before the
// first forward, and reductions start when the last backward is over.
Plan OneAfterAnother(Plan plan);

// The plan, which keeps everything, with full recomputation as checkpoints of whole layers do it:
// backward runs a layer's forward again from its first instruction to its last, collectives
// included, and only then begins. (A plan of ours runs again what backward reads.)
Plan WithLayersRunAgain(Plan plan);

}  // namespace mgc

#endif  // MGC_TESTS_PLAN_FORMS_REWRITTEN_PLANS_H_
