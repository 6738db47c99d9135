// MLP-mixer (Tolstikhin et al., arXiv 2105.01601), written with the builder.

#ifndef MGC_EXAMPLES_MIXER_MODEL_H_
#define MGC_EXAMPLES_MIXER_MODEL_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"

namespace mgc {

struct MixerSizes {
  int64_t layers = 2;
  int64_t patches = 16;
  int64_t pixels = 48;  // numbers in a patch
  int64_t hidden = 64;
  int64_t tokens_ffn = 32;  // of the parts that mix patches
  int64_t ffn = 128;        // of those that mix channels
  int64_t labels = 10;
};

// One micro-batch of `batch` images. Data inputs: `patches` f32[batch, patches, pixels], `labels`
// i64[batch], `weights` f32[batch].
absl::StatusOr<Graph> MixerModel(const MixerSizes& sizes, int64_t batch);

}  // namespace mgc

#endif  // MGC_EXAMPLES_MIXER_MODEL_H_
