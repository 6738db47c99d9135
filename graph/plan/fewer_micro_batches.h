// A step with fewer micro-batches: the same lists with some micro-batches left out.
//
//   F0 F1 B0 F2 B1 F3 B2 B3 U      of 4
//         F0    F1 B0 B1 U         the last 2 of them, numbered anew
//
// Segments, calls and addresses stay: a rank runs it in the arena that the whole step runs in, so
// that a run may change between them from step to step.

#ifndef MGC_GRAPH_PLAN_FEWER_MICRO_BATCHES_H_
#define MGC_GRAPH_PLAN_FEWER_MICRO_BATCHES_H_

#include <cstdint>
#include <vector>

#include "graph/plan/plan.h"

namespace mgc {

// `program` with the micro-batches `kept` (ascending; the last one is the step's last), numbered 0,
// 1, ... anew. Addresses stay. What waited for something that is left out waits for what that
// waited for: orders and reuse of memory among the rest stay as they were, provided they were right
// in the full lists (CheckOrder).
Program ProjectMicroBatches(const Program& program, const std::vector<int64_t>& kept);

// `plan` with steps and evaluations of the last `micro_batches` of its own, 1 to that many, and the
// batch they make. Predicted is what the caller predicts; nobody has proved it. `plan` has passed
// graph/plan/plan_check.h.
Plan WithFewerMicroBatches(const Plan& plan, int64_t micro_batches);

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_FEWER_MICRO_BATCHES_H_
