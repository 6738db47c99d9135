// Adapters in the format of Hugging Face's peft: adapter_config.json and adapter_model.safetensors.

#ifndef MGC_TOOLS_MODELS_ADAPTER_DIR_H_
#define MGC_TOOLS_MODELS_ADAPTER_DIR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "frontends/adapter.h"
#include "frontends/model_config.h"
#include "graph/plan/plan.h"
#include "runtime/data/safetensors.h"
#include "runtime/weights/model_files.h"

namespace mgc {

struct PublishedAdapter {
  AdapterOptions options;
  std::vector<std::string> modules;  // as peft's target_modules
  bool fan_in_fan_out = false;
};

// What the options of a checkpoint say of an adapter, if it has one; `config` is of its model.
// FailedPrecondition names what of it the model does not have.
absl::StatusOr<absl::optional<PublishedAdapter>> AdapterOfCheckpoint(const std::string& folder,
                                                                     const ModelConfig& config);

// The weights of an adapter in the directory `path`, for a plan that has one of that form; `config`
// is of its model. InvalidArgument names all that the two do not have in common, and what of the
// adapter would be computed otherwise here; `notes` gets what of it does not count.
absl::StatusOr<ModelFiles> OpenAdapter(const std::string& path, const ModelConfig& config,
                                       const Plan& plan, std::vector<std::string>* notes);

// Writes the adapter of the checkpoint in `folder` into `dir`, which is there; its number of
// elements. `base`: the directory of the model, for people and for peft; empty where there is none.
// FailedPrecondition where the checkpoint has no adapter, or not of this model.
absl::StatusOr<int64_t> WriteAdapter(const std::string& folder, const ModelConfig& config,
                                     const std::string& base, SafetensorsType type,
                                     const std::string& dir);

}  // namespace mgc

#endif  // MGC_TOOLS_MODELS_ADAPTER_DIR_H_
