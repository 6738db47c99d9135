// What the flags of mgc-run say of evaluations.

#ifndef MGC_TOOLS_CLI_EVAL_FLAGS_H_
#define MGC_TOOLS_CLI_EVAL_FLAGS_H_

#include "graph/base/diagnostic.h"
#include "tools/cli/run_flags.h"

namespace mgc {

// E1: data to evaluate on that is given twice, or by itself; with --eval-only none, or what is of
// training; documents of no text, or of a part of it.
void CheckEvaluation(const RunFlags& flags, Diagnostics* violations);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_EVAL_FLAGS_H_
