// The names of a family's published files, and where its parameters lie in them.

#ifndef MGC_FRONTENDS_WEIGHTS_WEIGHT_MAP_H_
#define MGC_FRONTENDS_WEIGHTS_WEIGHT_MAP_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "frontends/adapter.h"
#include "frontends/model_config.h"
#include "graph/weights/weight_map.h"

namespace mgc {

// Of the model that transformers makes of `config`. Errors of BuildModel.
absl::StatusOr<WeightMap> WeightMapOf(const ModelConfig& config);

// Of an adapter alone, with the names and shapes that peft gives it. Errors of BuildModel.
absl::StatusOr<WeightMap> AdapterMapOf(const ModelConfig& config, const AdapterOptions& adapter);

// What a product of an adapter's adds to a parameter of the model, times AdapterOptions::Scale.
struct AdaptedParameter {
  std::string parameter, a, b;  // shapes [in..., out...], [in..., rank], [rank, out...]
};
// All of a model with that adapter. Errors of BuildModel.
absl::StatusOr<std::vector<AdaptedParameter>> AdaptedParameters(const ModelConfig& config,
                                                                const AdapterOptions& adapter);

}  // namespace mgc

#endif  // MGC_FRONTENDS_WEIGHTS_WEIGHT_MAP_H_
