// GPT-2 as Megatron-LM computed it before there were fused kernels of attention: scores and
// probabilities are values. To be costed, not to be trained: Megatron-LM's kernel of the softmax
// scales and masks beside it, so that the graph says neither.

#ifndef MGC_TESTS_PUBLISHED_STORED_SCORES_H_
#define MGC_TESTS_PUBLISHED_STORED_SCORES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "frontends/model_config.h"
#include "graph/ir/graph.h"

namespace mgc {

// One micro-batch of a model of the family gpt2, by its layers, sizes, dropout and tied head.
// Errors of the builder.
absl::StatusOr<Graph> BuildWithStoredScores(const ModelConfig& config, int64_t batch, int64_t seq);

}  // namespace mgc

#endif  // MGC_TESTS_PUBLISHED_STORED_SCORES_H_
