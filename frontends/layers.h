// The layers of transformer models, written with ModelBuilder and nothing else.
//
// A layer takes the builder, its own name below the open scope, its input and options. It makes its
// parameters under that name: Linear(b, "up", ...) inside the scope `layers.3.mlp` has the weight
// `layers.3.mlp.up` and the bias `layers.3.mlp.up.bias`. The last dim of activations is the one
// that norms and products work on; dims are taken by their names (frontends/builder.h).
//
// No value other than the residual stream need cross from one layer of the model to the next: each
// makes the positions it needs.

#ifndef MGC_FRONTENDS_LAYERS_H_
#define MGC_FRONTENDS_LAYERS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "frontends/builder.h"

namespace mgc {

// Sum of values of one type; all but the first may lack leading dims, over which they are repeated.
Tensor Add(ModelBuilder& b, const std::vector<Tensor>& terms, CallSite site = CallSite::Current());

// 0, 1, ..., seq - 1: i64[seq]; of another dim, where one is named.
Tensor Positions(ModelBuilder& b, CallSite site = CallSite::Current());
Tensor PositionsOf(ModelBuilder& b, absl::string_view dim, CallSite site = CallSite::Current());

// Sets elements to zero with probability `p` and divides the others by 1 - p (Srivastava et al.
// 2014); `x` itself for p = 0. Its random stream is Path(name). p outside [0, 1) is an error.
Tensor Dropout(ModelBuilder& b, absl::string_view name, Tensor x, double p,
               CallSite site = CallSite::Current());

struct LinearOptions {
  bool bias = false;
  double std = 0.02;               // of the weight's initial values
  double dropout = 0;              // on the product with its bias
  absl::optional<ParamInit> init;  // of the weight, in place of normal values
  Tensor residual = {};            // added last; empty: nothing
};
// x W + bias, contracting the last dims of `x`. `spec` names the dims of W, contracted ones first:
// `embed -> heads head_dim` takes [..., embed] to [..., heads, head_dim] by a weight [embed, heads,
// head_dim]. Without dropout, product, bias and residual are one sum; what the builder's adapter
// has for this layer is a part of it, behind the bias.
Tensor Linear(ModelBuilder& b, absl::string_view name, Tensor x, absl::string_view spec,
              const LinearOptions& options = {}, CallSite site = CallSite::Current());

// Normalization over the last dim; the parameters (weight `name`, and LayerNorm's `name.bias`) have
// its size. Ba et al. 2016; Zhang and Sennrich 2019.
Tensor LayerNorm(ModelBuilder& b, absl::string_view name, Tensor x, double eps = 1e-5,
                 CallSite site = CallSite::Current());
Tensor RmsNorm(ModelBuilder& b, absl::string_view name, Tensor x, double eps = 1e-5,
               CallSite site = CallSite::Current());

// Rows of the table `name`, a parameter of the two dims `dims` (`vocab embed`), at `ids`: [ids...,
// second dim]. `table`, if given, receives the parameter, for a tied head.
Tensor Embedding(ModelBuilder& b, absl::string_view name, Tensor ids, absl::string_view dims,
                 double std = 0.02, Tensor* table = nullptr, CallSite site = CallSite::Current());

// Rotary position embedding (Su et al. 2021), rotating the pair (j, j + head_dim / 2) of each head.
struct RopeOptions {
  double theta = 10000;
  // Llama 3's stretched frequencies (config.json: rope_type `llama3`).
  struct Llama3 {
    double factor = 8;
    double low_frequency_factor = 1;
    double high_frequency_factor = 4;
    int64_t original_max_positions = 8192;
  };
  absl::optional<Llama3> llama3;
  int64_t dims = 0;  // the first elements of a head, which turn; the others stay; 0: all
};
// `x` [batch, seq, heads, head_dim], `positions` i64[seq]; head_dim must be even.
Tensor Rope(ModelBuilder& b, Tensor x, Tensor positions, const RopeOptions& options,
            CallSite site = CallSite::Current());

// The row of each sample of `x` [batch, seq, ...] at which `row`, f32[batch, seq], has a 1 among
// zeros: chosen by a product, which takes it from wherever its tile is.
Tensor ChosenRow(ModelBuilder& b, Tensor row, Tensor x, CallSite site = CallSite::Current());

struct AttentionOptions {
  bool qkv_bias = false;  // on the projections of queries, keys and values
  bool out_bias = false;  // on the output projection
  // RMSNorm of each head's query and key, before RoPE, with this epsilon; nothing: none.
  absl::optional<double> qk_norm;
  double std = 0.02;
  double out_std = 0.02;  // of the output projection
  double dropout = 0;     // on the probabilities
  double out_dropout = 0;
  absl::optional<RopeOptions> rope;  // on queries and keys
  double scale = 0;                  // of the scores; 0: 1/sqrt(head_dim)
  int64_t window = 0;                // keys that a query sees, itself and those before it; 0: all
  double cap = 0;                    // scores are cap * tanh(score / cap); 0: as they are
  bool causal = true;                // a query sees the keys up to its own; otherwise all
  // i64[batch, seq]: a query sees keys of its own segment only. Padding is a segment of its own, so
  // that a mask of ones and zeros is one, too. Empty: no segments.
  Tensor segments = {};
  // Keys and values are of this [batch, other, embed] (with `causal` false: cross-attention);
  // empty: of x. Its segments, i64[batch, other], where there are any.
  Tensor memory = {};
  Tensor memory_segments = {};
  // Keys and values are kept for later steps (graph/ir/results.h): states `k_kept` and `v_kept`
  // [batch, kept, kv_heads, head_dim], written from row `place`, i64[batch], of each sample on.
  // Empty: they are not.
  Tensor place = {};
  // With a place: a sample's one query stands there, and sees the kept keys whose number in `seen`,
  // i64[batch, kept], is its own in `sees`, i64[batch, seq]. Empty: queries begin at 0, and see the
  // keys beside them.
  Tensor sees = {};
  Tensor seen = {};
  // f32[batch, seq], ones among zeros: what is returned, and `residual`, are of this one row of
  // each sample, [batch, embed]. Empty: of all.
  Tensor row = {};
};
// Attention (Vaswani et al. 2017) over x [batch, seq, embed], with the dims `heads`, `kv_heads`
// (fewer: grouped queries, Ainslie et al. 2023) and `head_dim`. Parameters `q`, `k`, `v`, `out`
// and, with qk_norm, `q_norm` and `k_norm` [head_dim] below `name`. `residual` (or an empty Tensor)
// is added.
Tensor Attention(ModelBuilder& b, absl::string_view name, Tensor x, Tensor residual,
                 const AttentionOptions& options = {}, CallSite site = CallSite::Current());

struct MlpOptions {
  // down(f(up x)), or down(f(gate x) * up x) (Shazeer 2020). GELU in its tanh form; kGeluErf: GELU
  // itself.
  enum class Activation { kGelu, kGeluErf, kSwiglu, kGeglu };
  Activation activation = Activation::kGelu;
  bool bias = false;
  double std = 0.02;
  double out_std = 0.02;
  double out_dropout = 0;
};
// Whether it has a gate.
bool IsGated(MlpOptions::Activation activation);

// The feed-forward part over x [..., embed] with the dim `mlp`. Parameters `up`, `down` and, where
// there is one, `gate` below `name`. `residual` (or an empty Tensor) is added.
Tensor Mlp(ModelBuilder& b, absl::string_view name, Tensor x, Tensor residual,
           const MlpOptions& options = {}, CallSite site = CallSite::Current());

// x [..., embed] times the transpose of `table` [vocab, embed]: [..., vocab].
Tensor Logits(ModelBuilder& b, Tensor x, Tensor table, CallSite site = CallSite::Current());

// cap * tanh(x / cap); `x` itself for cap = 0. A cap below 0 is an error.
Tensor SoftCap(ModelBuilder& b, Tensor x, double cap, CallSite site = CallSite::Current());

}  // namespace mgc

#endif  // MGC_FRONTENDS_LAYERS_H_
