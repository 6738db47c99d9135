// Proofs as the commands deal with them.

#ifndef MGC_TOOLS_CLI_PROOF_H_
#define MGC_TOOLS_CLI_PROOF_H_

#include "graph/plan/plan.h"

namespace mgc {

// Proves the plan and notes in it who did; kExitOk. Otherwise prints the findings and returns
// kExitMismatch.
int ProveOrExplain(Plan* plan);

// The same, but leaves out what this very verifier has proved already. A proof by an older one is
// not believed: it may have missed what this one sees.
int EnsureProved(Plan* plan);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_PROOF_H_
