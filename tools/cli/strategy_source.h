// Where a strategy comes from: a preset or a file.

#ifndef MGC_TOOLS_CLI_STRATEGY_SOURCE_H_
#define MGC_TOOLS_CLI_STRATEGY_SOURCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "graph/ir/graph.h"
#include "graph/plan/plan.h"
#include "graph/types/model_dims.h"
#include "passes/compile.h"
#include "passes/config/strategy_spec.h"
#include "passes/search/class_layout.h"

namespace mgc {

// `--strategy classes`: no file, but what passes/search/class_layout.h chooses for the model.
inline constexpr char kClassStrategy[] = "classes";

// The strategy that --strategy names: a preset, else a file, `-` for stdin; the default without.
// Errors are located in the file; a name that is neither, as `classes`, which needs a model to
// choose for, is NotFound with the nearest preset.
absl::StatusOr<StrategySpec> LoadStrategy(const absl::optional<std::string>& name);

// What to tell the user of a layout: its rows, as a file that can be edited and passed back;
// whether more could have been tried, and how far a rank is above the budget of parameter bytes.
std::string NoteOn(const ClassLayout& layout);

// For `classes`, and without a name for a graph whose parameters the default does not cut, the
// strategy by dim classes takes the place of options->strategy; `name` is then `classes`. Where
// classes are not asked for and do not cut either, which replication must be allowed for, the
// default stays. Returns the note on a layout that was made, else nothing. Errors: those of
// LayOutByClasses.
absl::StatusOr<std::string> LayOutIfUnnamed(const Graph& model, const ModelDims& dims,
                                            absl::optional<std::string>* name,
                                            CompileOptions* options);

// The note on rows that a search has found; `name` is then `classes` too.
std::string NameFound(const StrategySpec& strategy, absl::optional<std::string>* name);

// The file that LoadStrategy reads, or `-`; none for a preset.
absl::optional<std::string> StrategyPath(const absl::optional<std::string>& name);

// What a plan records of it: the name given and every line of the strategy, `strategy.1` first. The
// default leaves no trace.
PlanOptions OptionsOf(const absl::optional<std::string>& name, const StrategySpec& spec);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_STRATEGY_SOURCE_H_
