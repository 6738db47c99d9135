// Damage to a middle layer of many equal ones alone, which a proof that executes representatives of
// layers never runs unless it sees that the layer differs.

#ifndef MGC_TESTS_VERIFY_DAMAGE_MIDDLE_LAYER_H_
#define MGC_TESTS_VERIFY_DAMAGE_MIDDLE_LAYER_H_

#include <set>
#include <string>

#include "graph/plan/plan.h"

namespace mgc {

class MiddleLayer {
 public:
  // Of a plan of eight layers a chunk. `apart`: layer 4 gets segments of its own, the same as the
  // others', so that they can be damaged alone; else only its calls and its neighbours' can.
  MiddleLayer(const Plan& plan, bool apart);

  const Plan& plan() const { return plan_; }
  // Whether `mutant` of plan() differs from it in calls of layers 2 to 6 and segments of layer 4
  // alone, and in some of them.
  bool IsAllThatDiffers(const Plan& mutant) const;

 private:
  Plan plan_;
  std::set<int> own_;  // layer 4's segments
  std::string bytes_;
};

}  // namespace mgc

#endif  // MGC_TESTS_VERIFY_DAMAGE_MIDDLE_LAYER_H_
