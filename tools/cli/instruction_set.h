// The instruction set whose kernels a run uses, as far as a command line says it.

#ifndef MGC_TOOLS_CLI_INSTRUCTION_SET_H_
#define MGC_TOOLS_CLI_INSTRUCTION_SET_H_

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "graph/base/diagnostic.h"
#include "kernels/simd_level.h"
#include "tools/cli/flags.h"

namespace mgc {

// `--instruction-set LEVEL`.
void AddInstructionSetFlag(Flags* flags, absl::optional<std::string>* out);

// I1: a level above the best of this processor.
Diagnostics CheckInstructionSet(const absl::optional<std::string>& word, SimdLevel best);

// The level of a word that has passed, `best` without one.
SimdLevel InstructionSetOf(const absl::optional<std::string>& word, SimdLevel best);

// A command line without that flag: in it processes of a run may differ.
std::vector<std::string> WithoutInstructionSet(const std::vector<std::string>& arguments);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_INSTRUCTION_SET_H_
