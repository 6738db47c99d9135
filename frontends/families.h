// What the model families are made of, a row each: all that tells them apart beside the numbers of
// a configuration. The model (frontends/models.h), the count of its parameters and the keys of its
// files follow from the row.

#ifndef MGC_FRONTENDS_FAMILIES_H_
#define MGC_FRONTENDS_FAMILIES_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "frontends/layers.h"
#include "frontends/model_config.h"

namespace mgc {

struct FamilyTraits {
  absl::string_view model_type;    // as config.json has it; the graph's name, too
  absl::string_view architecture;  // config.json's `architectures`
  ModelFamily family;
  MlpOptions::Activation activation = MlpOptions::Activation::kSwiglu;
  bool layer_norm = false;         // with a bias each; otherwise RMSNorm
  bool learned_positions = false;  // a table of them; otherwise RoPE on queries and keys
  bool qkv_bias = false;           // on the projections of queries, keys and values
  bool out_bias = false;           // on attention's output projection
  bool mlp_bias = false;
  bool qk_norm = false;           // each head's query and key is normalized before RoPE
  bool post_norms = false;        // what attention and feed-forward give is normalized, too
  bool scaled_embedding = false;  // by the root of the hidden size
  bool norms_of_sums = false;     // a part's sum with its input is normalized, not its input
  bool bidirectional = false;     // queries see all keys
  // Words of two segments with some left out, which are to be found: data inputs `segments` and
  // `mask` (what is no padding), a norm behind the embedding, a transform before the head.
  bool masked_words = false;
  bool images = false;  // patches instead of tokens, and one label for each sample
};

// All families, in the order of ModelFamily.
absl::Span<const FamilyTraits> ModelFamilies();

const FamilyTraits& TraitsOf(ModelFamily family);

// The family's, or the form of it that the configuration asks for.
MlpOptions::Activation ActivationOf(const ModelConfig& config);

}  // namespace mgc

#endif  // MGC_FRONTENDS_FAMILIES_H_
