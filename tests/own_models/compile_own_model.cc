#include "tests/own_models/compile_own_model.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/ir/check.h"
#include "graph/text/parser.h"
#include "graph/verify/verify.h"
#include "passes/compile.h"
#include "passes/config/strategy_text.h"
#include "passes/graph/resize.h"
#include "tests/filetest/pass_runner.h"

namespace mgc {
namespace {

// The strategy in the comments of a model.
absl::StatusOr<StrategySpec> StrategyOf(absl::string_view text, const std::string& file) {
  std::string lines;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, "// strategy: ")) absl::StrAppend(&lines, line, "\n");
  }
  if (lines.empty()) return DefaultStrategy();
  return ParseStrategy(absl::StrCat("strategy @own {\n", lines, "}\n"), file);
}

}  // namespace

absl::StatusOr<OwnModel> ReadOwnModel(absl::string_view model) {
  const std::string file = absl::StrCat("tests/own_models/", model, ".mgc");
  OwnModel own;
  MGC_ASSIGN_OR_RETURN(own.text, ReadFile(file));
  MGC_ASSIGN_OR_RETURN(own.model, ParseGraph(own.text, file));
  MGC_RETURN_IF_ERROR(CheckGraph(own.model));
  MGC_ASSIGN_OR_RETURN(own.strategy, StrategyOf(own.text, file));
  std::vector<std::string> notes;
  own.model = PrepareModel(own.model, &notes);
  return own;
}

absl::StatusOr<Plan> CompileOwnModel(absl::string_view model, absl::string_view options) {
  MGC_ASSIGN_OR_RETURN(OwnModel own, ReadOwnModel(model));
  CompileOptions compile;
  MGC_ASSIGN_OR_RETURN(compile.parallel, ParseParallel(options, own.model));
  const ParallelConfig& parallel = compile.parallel;
  Resized resized = Resize(own.model, parallel.micro_batch_size * DataParallelSize(parallel),
                           parallel.seq_length);
  MGC_RETURN_IF_ERROR(resized.violations.ToStatus());
  compile.machine = MachinePresets().front();
  compile.strategy = own.strategy;
  MGC_ASSIGN_OR_RETURN(Plan plan, Compile(*resized.graph, ModelDims(), compile));
  MGC_RETURN_IF_ERROR(ProvePlan(&plan));
  return plan;
}

}  // namespace mgc
