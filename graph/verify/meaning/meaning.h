// That a plan computes what its model says: its own instruction lists are executed, for all ranks
// of a shrunk mesh, over pairs of residues, and compared with a single device.

#ifndef MGC_GRAPH_VERIFY_MEANING_MEANING_H_
#define MGC_GRAPH_VERIFY_MEANING_MEANING_H_

#include <cstdint>

#include "graph/base/diagnostic.h"
#include "graph/plan/plan.h"

namespace mgc {

struct MeaningReport {
  int runs = 0;        // sizes x {training, evaluation}
  int64_t calls = 0;   // of keyed functions, over all runs: N of the bound
  int64_t degree = 0;  // of what lies between two calls, at most: D of the bound
};

// Adds findings meaning_v1, meaning_v2, ... (docs/verify.md). The plan has passed CheckPlan and the
// checks of placement, order and memory, on which the shortening to three micro-batches rests.
MeaningReport CheckMeaning(const Plan& plan, Diagnostics* findings);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_MEANING_MEANING_H_
