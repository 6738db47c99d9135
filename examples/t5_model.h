// T5 (Raffel et al., arXiv 1910.10683, in the form of its version 1.1), written with the builder:
// an encoder and a decoder with relative position biases, RMSNorm, gated GELU, no biases, and
// scores that are not scaled.

#ifndef MGC_EXAMPLES_T5_MODEL_H_
#define MGC_EXAMPLES_T5_MODEL_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"

namespace mgc {

struct T5Sizes {
  int64_t layers = 2;  // of the encoder, and as many of the decoder
  int64_t hidden = 64;
  int64_t heads = 4;
  int64_t head_dim = 16;
  int64_t ffn = 128;
  int64_t vocab = 257;
  int64_t buckets = 32;    // of relative positions
  int64_t farthest = 128;  // distance from which on all share one
};

// One micro-batch of `batch` pairs. Data inputs: `source` i64[batch, source], what the encoder
// reads, and `mask` of the same type, 0 for padding, which nobody sees (of every sample something
// must be left); `tokens` and `targets` i64[batch, seq], what the decoder reads and is to say;
// `weights`.
absl::StatusOr<Graph> T5Model(const T5Sizes& sizes, int64_t batch, int64_t source, int64_t seq);

}  // namespace mgc

#endif  // MGC_EXAMPLES_T5_MODEL_H_
