// The names of a family's published files, and where its parameters lie in them.

#ifndef MGC_FRONTENDS_WEIGHTS_WEIGHT_MAP_H_
#define MGC_FRONTENDS_WEIGHTS_WEIGHT_MAP_H_

#include "absl/status/statusor.h"
#include "frontends/model_config.h"
#include "graph/weights/weight_map.h"

namespace mgc {

// Of the model that transformers makes of `config`. Errors of BuildModel.
absl::StatusOr<WeightMap> WeightMapOf(const ModelConfig& config);

}  // namespace mgc

#endif  // MGC_FRONTENDS_WEIGHTS_WEIGHT_MAP_H_
