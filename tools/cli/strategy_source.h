// Where a strategy comes from: a preset or a file.

#ifndef MGC_TOOLS_CLI_STRATEGY_SOURCE_H_
#define MGC_TOOLS_CLI_STRATEGY_SOURCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "graph/plan/plan.h"
#include "passes/config/strategy_spec.h"

namespace mgc {

// The strategy that --strategy names: a preset, else a file, `-` for stdin; the default without.
// Errors are located in the file; a name that is neither is NotFound with the nearest preset.
absl::StatusOr<StrategySpec> LoadStrategy(const absl::optional<std::string>& name);

// The file that LoadStrategy reads, or `-`; none for a preset.
absl::optional<std::string> StrategyPath(const absl::optional<std::string>& name);

// What a plan records of it: the name given and every line of the strategy, `strategy.1` first. The
// default leaves no trace.
PlanOptions OptionsOf(const absl::optional<std::string>& name, const StrategySpec& spec);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_STRATEGY_SOURCE_H_
