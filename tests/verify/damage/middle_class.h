// Damage to a middle class of equal ones alone: to what it calls, holds, sends and receives. A
// proof that executes representatives of classes executes none of its layers unless it sees that
// the class differs.

#ifndef MGC_TESTS_VERIFY_DAMAGE_MIDDLE_CLASS_H_
#define MGC_TESTS_VERIFY_DAMAGE_MIDDLE_CLASS_H_

#include <string>

#include "graph/plan/plan.h"

namespace mgc {

class MiddleClass {
 public:
  // Of a plan of six classes, of which 1 to 4 are equal and 3 is passed through.
  explicit MiddleClass(const Plan& plan);

  // Whether `mutant` differs from the plan in class 3 and in the lists of its neighbours alone.
  bool IsAllThatDiffers(const Plan& mutant) const;

 private:
  const Plan plan_;
  const std::string bytes_;
};

}  // namespace mgc

#endif  // MGC_TESTS_VERIFY_DAMAGE_MIDDLE_CLASS_H_
