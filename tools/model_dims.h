// From a model's configuration to the sizes that the compiler's rules ask for; the rooms of the two
// know nothing of each other.

#ifndef MGC_TOOLS_MODEL_DIMS_H_
#define MGC_TOOLS_MODEL_DIMS_H_

#include "frontends/model_config.h"
#include "passes/parallel_config.h"

namespace mgc {

inline ModelDims DimsOf(const ModelConfig& config) {
  ModelDims dims;
  dims.layers = config.layers;
  dims.hidden = config.hidden;
  dims.heads = config.heads;
  dims.kv_heads = config.kv_heads;
  dims.head_dim = config.head_dim;
  dims.ffn = config.ffn;
  dims.vocab = config.vocab;
  dims.max_positions = config.max_positions;
  return dims;
}

}  // namespace mgc

#endif  // MGC_TOOLS_MODEL_DIMS_H_
