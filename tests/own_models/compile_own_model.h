// The models beside this file, compiled.

#ifndef MGC_TESTS_OWN_MODELS_COMPILE_OWN_MODEL_H_
#define MGC_TESTS_OWN_MODELS_COMPILE_OWN_MODEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/ir/graph.h"
#include "graph/plan/plan.h"
#include "passes/config/strategy_spec.h"

namespace mgc {

struct OwnModel {
  std::string text;       // of the file
  Graph model;            // checked and prepared (passes/compile.h)
  StrategySpec strategy;  // of its comments, else the default
};

// `model` as a file's name without its ending.
absl::StatusOr<OwnModel> ReadOwnModel(absl::string_view model);

// By its own strategy, at the sizes it was written with but for what `options` say as in
// tests/filetest/pass_runner.h. The plan is proved.
absl::StatusOr<Plan> CompileOwnModel(absl::string_view model, absl::string_view options);

}  // namespace mgc

#endif  // MGC_TESTS_OWN_MODELS_COMPILE_OWN_MODEL_H_
