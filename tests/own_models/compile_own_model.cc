#include "tests/own_models/compile_own_model.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/text/parser.h"
#include "graph/verify/verify.h"
#include "passes/compile.h"
#include "tests/filetest/pass_runner.h"

namespace mgc {

absl::StatusOr<Plan> CompileOwnModel(absl::string_view model, absl::string_view options) {
  const std::string file = absl::StrCat("tests/own_models/", model, ".mgc");
  MGC_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  MGC_ASSIGN_OR_RETURN(const Graph read, ParseGraph(text, file));
  std::vector<std::string> notes;
  const Graph named = PrepareModel(read, &notes);
  CompileOptions compile;
  MGC_ASSIGN_OR_RETURN(compile.parallel, ParseParallel(options, named));
  compile.machine = MachinePresets().front();
  MGC_ASSIGN_OR_RETURN(Plan plan, Compile(named, ModelDims(), compile));
  MGC_RETURN_IF_ERROR(ProvePlan(&plan));
  return plan;
}

}  // namespace mgc
