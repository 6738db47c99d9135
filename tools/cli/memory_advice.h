// What would lower the memory that a plan needs: other flags, each compiled to see.

#ifndef MGC_TOOLS_CLI_MEMORY_ADVICE_H_
#define MGC_TOOLS_CLI_MEMORY_ADVICE_H_

#include <cstdint>

#include "graph/plan/plan.h"
#include "tools/views/memory.h"

namespace mgc {

// Compiles the plan's model with the options that the plan records and one of them changed:
// recomputation, ZeRO, sequence parallelism, bf16, a smaller micro-batch, fewer chunks or 1f1b,
// twice the --pp, --cp or --tp, on the same ranks where dp can be halved, else on twice as many.
// Those that are legal and lower the highest peak are told. Changes that would not be compiled
// before `seconds` have passed, by how long the plan itself takes, are named in a note instead; so
// is why there is no advice: the plan is not what its options compile to. None of the plans is
// proved.
MemoryAdvice AdviseMemory(const Plan& plan, int64_t seconds);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_MEMORY_ADVICE_H_
