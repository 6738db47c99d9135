// A step with fewer micro-batches: the same lists with some micro-batches left out.

#ifndef MGC_GRAPH_VERIFY_SHRINK_PROJECT_STEPS_H_
#define MGC_GRAPH_VERIFY_SHRINK_PROJECT_STEPS_H_

#include <cstdint>
#include <vector>

#include "graph/plan/plan.h"

namespace mgc {

// 0, 1 and M - 1, as far as they exist.
std::vector<int64_t> KeptMicroBatches(int64_t num_micro_batches);

// `program` with the micro-batches `kept` (ascending; the last one is the step's last), numbered 0,
// 1, ... anew. Addresses stay. What waited for something that is left out waits for what that
// waited for: orders and reuse of memory among the rest stay as they were, provided they were right
// in the full lists (CheckOrder).
Program ProjectMicroBatches(const Program& program, const std::vector<int64_t>& kept);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_SHRINK_PROJECT_STEPS_H_
