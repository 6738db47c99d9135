// The sizes of a model that decide how it may be spread over ranks. 0 is a dim that it does not
// have, which restricts nothing.

#ifndef MGC_GRAPH_TYPES_MODEL_DIMS_H_
#define MGC_GRAPH_TYPES_MODEL_DIMS_H_

#include <cstdint>

namespace mgc {

// Which places along a pipeline a model's nodes name.
struct ModelLayers {
  bool named = true;  // false: none, or no layer; the model is one layer, which nothing cuts
  bool embedding = true;
  bool head = true;
};

struct ModelDims {
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  // = heads without grouped queries
  int64_t head_dim = 0;  // 0: hidden / heads
  int64_t ffn = 0;
  int64_t vocab = 0;
  int64_t max_positions = 0;  // longest sequence the model is made for
  ModelLayers places = {};
};

}  // namespace mgc

#endif  // MGC_GRAPH_TYPES_MODEL_DIMS_H_
