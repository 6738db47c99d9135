// What a plan's lists allow to happen before what, for tests: built from compute order, order of
// communication, rendezvous and waits alone, over all classes and two steps without a barrier.
//
// A class has two queues. The compute queue runs its actions; inside them it starts collectives and
// waits for some. The communication queue runs collectives and transfers, merged by the transfers'
// anchors, one after another; an entry takes place when every class concerned has come to it.

#ifndef MGC_PASSES_PLAN_TESTING_HAPPENS_BEFORE_H_
#define MGC_PASSES_PLAN_TESTING_HAPPENS_BEFORE_H_

#include <string>
#include <vector>

#include "graph/plan/plan.h"

namespace mgc {

// What is wrong with the order of a plan's training (or evaluation) step, one problem a line, at
// most ten; empty when nothing is:
//   an action that is missing, doubled, or adds to accumulators out of micro-batch order
//   a transfer without its other end, of another size, or at another address than its action uses
//   a circle: a step that cannot finish, whatever the times
//   a boundary slot that is written while another use of it is not over
std::string CheckOrder(const Plan& plan, bool eval);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_TESTING_HAPPENS_BEFORE_H_
