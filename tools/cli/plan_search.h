// `mgc-compile --auto`: the search of passes/search/plans over what the flags leave open.

#ifndef MGC_TOOLS_CLI_PLAN_SEARCH_H_
#define MGC_TOOLS_CLI_PLAN_SEARCH_H_

#include "absl/status/statusor.h"
#include "passes/compile.h"
#include "passes/search/plans/search_plans.h"
#include "tools/cli/model_source.h"
#include "tools/cli/parallel_flags.h"

namespace mgc {

// What the flags fix. A schedule or a number of chunks fixes both, and layers placed by hand fix
// --pp with them.
FixedChoices FixedBy(const ParallelFlags& flags);

// A search for `source`, which outlives it, around the configuration that `flags` ask for. Of
// `options` machine and strategy are read.
SearchRequest SearchFor(const ModelSource& source, const ParallelFlags& flags,
                        const ParallelConfig& config, const CompileOptions& options);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_PLAN_SEARCH_H_
