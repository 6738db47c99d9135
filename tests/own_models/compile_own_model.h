// The models beside this file, compiled.

#ifndef MGC_TESTS_OWN_MODELS_COMPILE_OWN_MODEL_H_
#define MGC_TESTS_OWN_MODELS_COMPILE_OWN_MODEL_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/plan/plan.h"

namespace mgc {

// `model` as a file's name without its ending, `options` as in tests/filetest/pass_runner.h. The
// plan is proved.
absl::StatusOr<Plan> CompileOwnModel(absl::string_view model, absl::string_view options);

}  // namespace mgc

#endif  // MGC_TESTS_OWN_MODELS_COMPILE_OWN_MODEL_H_
