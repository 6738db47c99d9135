// The model families, written with the builder and its layers and nothing else.

#ifndef MGC_FRONTENDS_MODELS_H_
#define MGC_FRONTENDS_MODELS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "frontends/adapter.h"
#include "frontends/model_config.h"
#include "graph/ir/graph.h"

namespace mgc {

// What a model that is asked for the next token of a text is given of the text.
enum class NextToken : uint8_t {
  kNone,    // it is trained
  kWhole,   // all of it, each time
  kPrompt,  // its beginning, the keys and values of which are kept
  kToken,   // one token more (seq is 1); of those before it what is kept (AttentionOptions::seen)
};

struct ModelOptions {
  // Ranks make room for vocabulary rows in multiples of this (make-vocab-size-divisible-by).
  int64_t vocab_multiple = 1;
  // Of models whose queries see the keys before them: these are keys of their own document only, by
  // a data input `documents`; and learned positions begin anew with each, by a data input
  // `positions` (graph/ir/vocabulary.h). RoPE sees differences of positions alone.
  bool mask_documents = false;
  bool restart_positions = false;
  // Not kNone: the model is asked for the token behind one row of each sample, and not trained
  // (graph/ir/results.h): its parameters are kept, its result is kLogitsResult, f32[batch, vocab],
  // of the row that the data input kRowInput, f32[batch, seq], has a 1 at among zeros. `targets`
  // i64[batch] and `weights` f32[batch] are of these rows, and so is the loss.
  NextToken next_token = NextToken::kNone;
  int64_t kept = 0;  // tokens of a sample that have room for their keys and values
  absl::optional<AdapterOptions> adapter;  // then it alone is trained
};

// What of the options a family cannot do; OK if it can.
absl::Status CheckModelOptions(const ModelConfig& config, const ModelOptions& options);

// Whether a model with these options can be asked about `seq` tokens at once.
absl::Status CheckAskedLength(const ModelOptions& options, int64_t seq);

// The forward graph of one micro-batch of `batch` sequences of `seq` tokens, with its loss: blocks
// of what the family is made of (frontends/families.h), a norm before each of their two parts, with
// the configuration's dropout, its head tied to the word embedding or not. Weights start
// normal, with the configuration's standard deviation, those of the two projections into the
// residual stream divided by sqrt(2 layers).
//
// Parameters, with V vocabulary, h embed, f mlp: `embedding.word` [V, h]; with learned positions
// `embedding.position` [positions, h]; per layer `layers.<i>.` `norm1` [h], `attention.q` [h,
// heads, head_dim], `attention.k`, `attention.v` [h, kv_heads, head_dim], `attention.q_norm`,
// `attention.k_norm` [head_dim] where these are normalized, `attention.out` [heads, head_dim, h],
// `norm2` [h], `mlp.up` [h, f], `mlp.gate` [h, f] where there is a gate, `mlp.down` [f, h],
// `attention.norm`, `mlp.norm` [h] where what these give is normalized;
// `head.norm` [h]; untied `head` [V, h]. A LayerNorm and a projection with a bias have `.bias`
// beside them, of the shape of the output. docs/parameters.md lists those of bert and vit.
//
// Data inputs: `tokens`, `targets` and `weights`; bert has `segments` and `mask`, and no weights: a
// target of kIgnoredTarget does not count. vit has `patches` f32[batch, patches, numbers of one],
// `labels` i64[batch] and `weights` f32[batch], and counts samples.
//
// InvalidArgument for options that the family cannot follow; when the sizes are not positive, `seq`
// exceeds the configuration's positions, or the configuration's numbers do not fit together; with
// images when `seq` is not that of the patches and the class row before them.
absl::StatusOr<Graph> BuildModel(const ModelConfig& config, int64_t batch, int64_t seq,
                                 const ModelOptions& options = {});

}  // namespace mgc

#endif  // MGC_FRONTENDS_MODELS_H_
