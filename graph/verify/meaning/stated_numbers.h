// meaning_v9: what a plan states beside its instructions is what its model and its mesh are.
//
// A user is told these numbers, and data are read by them: samples and tokens of a step, the
// vocabulary, how a parameter starts, the flags it was compiled with. What is known of a dim here
// follows from what is done with it, never from how it is called.

#ifndef MGC_GRAPH_VERIFY_MEANING_STATED_NUMBERS_H_
#define MGC_GRAPH_VERIFY_MEANING_STATED_NUMBERS_H_

#include "graph/base/diagnostic.h"
#include "graph/plan/plan.h"

namespace mgc {

void CheckStated(const Plan& plan, Diagnostics* findings);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_MEANING_STATED_NUMBERS_H_
