// Which linear layers an adapter stands beside, by the names that a family's files have for them.

#ifndef MGC_FRONTENDS_WEIGHTS_ADAPTER_TARGETS_H_
#define MGC_FRONTENDS_WEIGHTS_ADAPTER_TARGETS_H_

#include <string>
#include <vector>

#include "frontends/adapter.h"
#include "frontends/model_config.h"
#include "graph/base/diagnostic.h"

namespace mgc {

// Stands for every linear layer but those that make logits.
inline constexpr char kAllLinear[] = "all-linear";

struct AdapterTargets {
  // As peft's `target_modules`: each is a module's name, or what stands behind a dot of it,
  // `q_proj`; each once.
  std::vector<std::string> modules;
  std::vector<AdaptedLayers> layers;  // the model's layers that are these modules
  bool fan_in_fan_out = false;        // peft's: weights of these modules are [inputs, outputs]
  Diagnostics problems;               // what is no such name, with the nearest; without labels
};

// `wanted`: such names, or kAllLinear. Layers that one tensor of the files has share A.
AdapterTargets FindAdapterTargets(const ModelConfig& config,
                                  const std::vector<std::string>& wanted);

// The modules of queries and of values: what peft takes where nothing is said.
std::vector<std::string> DefaultAdapterTargets(const ModelConfig& config);

}  // namespace mgc

#endif  // MGC_FRONTENDS_WEIGHTS_ADAPTER_TARGETS_H_
