// Damage to a middle chunk of equal ones on a rank alone: to what it calls, to the blocks of its
// class and to their updates. A proof that executes representatives of chunks executes none of its
// layers unless it sees that the chunk differs.

#ifndef MGC_TESTS_VERIFY_DAMAGE_MIDDLE_CHUNK_H_
#define MGC_TESTS_VERIFY_DAMAGE_MIDDLE_CHUNK_H_

#include <string>

#include "graph/plan/plan.h"

namespace mgc {

class MiddleChunk {
 public:
  // Of a plan of two classes, of whose second the chunks 0 to 3 are equal and 2 is passed through.
  explicit MiddleChunk(const Plan& plan);

  // Whether `mutant` differs from the plan in that chunk, blocks and updates of its class alone.
  bool IsAllThatDiffers(const Plan& mutant) const;

 private:
  const Plan plan_;
  const std::string bytes_;
};

}  // namespace mgc

#endif  // MGC_TESTS_VERIFY_DAMAGE_MIDDLE_CHUNK_H_
