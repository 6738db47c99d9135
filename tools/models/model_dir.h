// Model directories: a configuration, and weights in the files of its family.

#ifndef MGC_TOOLS_MODELS_MODEL_DIR_H_
#define MGC_TOOLS_MODELS_MODEL_DIR_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "frontends/model_config.h"
#include "graph/plan/plan.h"
#include "runtime/weights/model_files.h"

namespace mgc {

struct ModelDir {
  ModelConfig config;
  ModelFiles files;
  std::vector<std::string> notes;  // of the configuration, and what was found of its weights
};

bool IsModelDir(const std::string& path);

// Reads the configuration and the headers of the files. Errors of LoadModelConfig and of
// ModelFiles::Open.
absl::StatusOr<ModelDir> OpenModelDir(const std::string& path);

// The same for a plan of that model; with `adapter` the directory of what stands beside it
// (tools/models/adapter_dir.h). FailedPrecondition where the plan is of another family, or names
// all parameters that they do not have in common. What families have as numbers (epsilons, RoPE's
// theta) is the plan's.
absl::StatusOr<ModelDir> OpenModelFor(const Plan& plan, const std::string& path,
                                      const absl::optional<std::string>& adapter);

// What a checkpoint becomes a model directory by.
struct ExportRequest {
  std::string checkpoint;                // its folder
  std::string like;                      // a model directory, a configuration or a preset
  absl::optional<SafetensorsType> type;  // of all tensors; none: as those of `like`, or F32
  absl::optional<int64_t> shard_bytes;
  std::string output;
  bool adapter_only = false;
};

// Writes the directory, whole or not at all; the number of elements. It has the configuration of
// `like` byte for byte but for the type of its weights, and the other files of such a directory
// that are small and no weights: a tokenizer's. What an adapter adds is added to the weights. With
// `adapter_only` the directory is an adapter of peft's instead (tools/models/adapter_dir.h).
// AlreadyExists where `output` is no empty folder.
absl::StatusOr<int64_t> ExportModelDir(const ExportRequest& request);

}  // namespace mgc

#endif  // MGC_TOOLS_MODELS_MODEL_DIR_H_
