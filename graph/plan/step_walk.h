// Walks through the lists of a plan as its ranks would, class by class: two queues a class
// (compute, communication), rendezvous between classes, nothing but what the plan says.
//
//   compute   actions in order; inside them calls and their instructions; a `wait` (and an action
//             that waits for transfers, a call that waits for collectives of calls before it) stops
//             the queue until what it waits for is done
//   comm      collectives and transfers merged by anchors, as the plan's one order of
//             communication; an entry runs when it is the head of the queue of every class
//             concerned, has been issued by all of them, and what its `after` lists name is done
//
// All ranks of a class run the same lists, so a class stands for them; collectives over `pp` and
// transfers join classes. Which entry runs first among those that can is fixed; whether the walk
// ends is not a matter of choice, since nothing that can run is ever withdrawn.

#ifndef MGC_GRAPH_PLAN_STEP_WALK_H_
#define MGC_GRAPH_PLAN_STEP_WALK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "graph/plan/plan.h"
#include "graph/plan/step_tables.h"

namespace mgc {

// An instruction where it runs: of `plan.classes[class_index]`.
struct InstrSite {
  int class_index = 0;
  int step = 0;
  const Action* action = nullptr;
  const Call* call = nullptr;
  const Segment* segment = nullptr;
  const Instr* instr = nullptr;
};

// What a walk shows on its way, in an order in which it may happen.
class StepVisitor {
 public:
  virtual ~StepVisitor() = default;
  // Asked once, when a walk begins. False: Run is not called, and a walk is much faster.
  virtual bool WantsInstrs() const { return true; }
  virtual void BeginStep(int /*class_index*/, int /*step*/) {}
  // What the action waits for is done.
  virtual void BeginAction(int /*class_index*/, const Action& /*action*/) {}
  // kCompute and kLoad.
  virtual void Run(const InstrSite& /*site*/) {}
  // The compute queue hands a collective over; it has not begun.
  virtual void Start(const InstrSite& /*site*/) {}
  // A collective happens: one site a class that takes part.
  virtual void Collective(absl::Span<const InstrSite> /*sites*/) {}
  // The compute queue is past its wait.
  virtual void Wait(const InstrSite& /*site*/) {}
  // A call that waits begins: of the background collectives that its class has started all but the
  // last `running` are done. The site has no instruction.
  virtual void Await(const InstrSite& /*site*/) {}
  virtual void Transfer(int /*from_class*/, const mgc::Transfer& /*send*/, int /*to_class*/,
                        const mgc::Transfer& /*receive*/) {}
  virtual void EndAction(int /*class_index*/, const Action& /*action*/) {}

  // Whether something that the plan lets happen now is held back until other queues have moved.
  virtual bool HoldsAction(int /*class_index*/, const Action& /*action*/) const { return false; }
  virtual bool HoldsTransfer(int /*to_class*/, const mgc::Transfer& /*receive*/) const {
    return false;
  }
  // Asked when no queue can move. True: the walk is tried on, less is held back than before.
  virtual bool LetGo() { return false; }
};

// Walks through `steps` steps of the training (or evaluation) program, one after another without a
// barrier. Returns "" when all lists have been run to their end, else what the first queues that
// are not at their end wait for, a line each. The plan has passed graph/plan/plan_check.h.
std::string WalkSteps(const Plan& plan, bool eval, int steps, StepVisitor* visitor);
std::string WalkSteps(const StepTables& tables, int steps, StepVisitor* visitor);

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_STEP_WALK_H_
