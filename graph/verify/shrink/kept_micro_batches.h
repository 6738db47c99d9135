// The micro-batches of a step that are executed to prove its meaning; the others are left out
// (graph/plan/fewer_micro_batches.h).

#ifndef MGC_GRAPH_VERIFY_SHRINK_KEPT_MICRO_BATCHES_H_
#define MGC_GRAPH_VERIFY_SHRINK_KEPT_MICRO_BATCHES_H_

#include <cstdint>
#include <vector>

namespace mgc {

// 0, 1 and M - 1, as far as they exist.
std::vector<int64_t> KeptMicroBatches(int64_t num_micro_batches);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_SHRINK_KEPT_MICRO_BATCHES_H_
