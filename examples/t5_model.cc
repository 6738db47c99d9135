#include "examples/t5_model.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "frontends/builder.h"
#include "frontends/layers.h"
#include "frontends/losses.h"

namespace mgc {
namespace {

constexpr double kEpsilon = 1e-6;

// What is added to the scores of one side, [heads, s, t]: a bias for each bucket of distances and,
// in the decoder, minus infinity for what comes later.
Tensor PositionBias(ModelBuilder& b, const T5Sizes& sizes, Tensor positions, bool causal) {
  const Tensor table = b.Param("position", "bucket heads", NormalInit(0.02));
  const Tensor buckets = b.Op("relative_bucket", {positions, positions},
                              {{"buckets", sizes.buckets},
                               {"farthest", sizes.farthest},
                               {"causal", int64_t{causal ? 1 : 0}}});
  const Tensor rows = b.Op("lookup", {table, buckets});  // [s, t, heads]
  const Tensor bias = b.Op("transpose", {rows}, {{"perm", std::vector<int64_t>{2, 0, 1}}});
  return causal ? Add(b, {bias, b.Op("causal_mask", {positions, positions})}) : bias;
}

// What hides the encoder's padding, [batch, heads, queries, source]: minus infinity for every key
// that the data input `mask` says is none.
Tensor HiddenPadding(ModelBuilder& b, const T5Sizes& sizes, absl::string_view queries) {
  const Tensor keys = b.Op("padding_mask", {b.Data("mask", "batch source", DType::kI64)});
  return b.Op("broadcast", {keys},
              {{"dims", std::vector<int64_t>{1, 2}},
               {"sizes", std::vector<int64_t>{sizes.heads, b.Size(queries)}},
               {"names", absl::StrCat("heads ", queries)}});
}

// Of the queries of `input` over `memory`; `added` to the scores, `residual` to what comes out.
Tensor AttentionOver(ModelBuilder& b, absl::string_view name, Tensor input, Tensor memory,
                     const std::vector<Tensor>& added, Tensor residual) {
  ModelBuilder::Scope scope = b.In(name);
  const Tensor q = Linear(b, "q", input, "embed -> heads head_dim");
  const Tensor k = Linear(b, "k", memory, "embed -> heads head_dim");
  const Tensor v = Linear(b, "v", memory, "embed -> heads head_dim");
  std::vector<Tensor> scores = {b.Op("matmul", {q, k}, {{"spec", "b s h d, b t h d -> b h s t"}})};
  scores.insert(scores.end(), added.begin(), added.end());
  const Tensor shares = b.Op("softmax", {Add(b, scores)});
  LinearOptions out;
  out.residual = residual;
  return Linear(b, "out", b.Op("matmul", {shares, v}, {{"spec", "b h s t, b t h d -> b s h d"}}),
                "heads head_dim -> embed", out);
}

Tensor FeedForward(ModelBuilder& b, Tensor x) {
  MlpOptions options;
  options.activation = MlpOptions::Activation::kGeglu;
  return Mlp(b, "mlp", RmsNorm(b, "norm2", x, kEpsilon), x, options);
}

// The encoder's reading of `source`.
Tensor Encode(ModelBuilder& b, const T5Sizes& sizes, Tensor* words) {
  Tensor x, bias;
  {
    ModelBuilder::Scope embedding = b.EmbeddingLayer();
    x = Embedding(b, "word", b.Data("source", "batch source", DType::kI64), "vocab embed", 0.02,
                  words);
    bias = PositionBias(b, sizes, PositionsOf(b, "source"), /*causal=*/false);
  }
  for (int i = 0; i < sizes.layers; ++i) {
    ModelBuilder::Scope layer = b.Layer(i);
    const Tensor input = RmsNorm(b, "norm1", x, kEpsilon);
    const Tensor hidden = HiddenPadding(b, sizes, "source");
    x = FeedForward(b, AttentionOver(b, "attention", input, input, {bias, hidden}, x));
    if (i + 1 == sizes.layers) x = RmsNorm(b, "encoded", x, kEpsilon);
  }
  return x;
}

Tensor Decode(ModelBuilder& b, const T5Sizes& sizes, Tensor words, Tensor encoded) {
  Tensor x, bias;
  for (int i = 0; i < sizes.layers; ++i) {
    ModelBuilder::Scope layer = b.Layer(static_cast<int>(sizes.layers) + i);
    if (i == 0) {
      x = b.Op("lookup", {words, b.Tokens()});
      bias = PositionBias(b, sizes, Positions(b), /*causal=*/true);
    }
    const Tensor input = RmsNorm(b, "norm1", x, kEpsilon);
    x = AttentionOver(b, "attention", input, input, {bias}, x);
    const Tensor hidden = HiddenPadding(b, sizes, "seq");
    x = AttentionOver(b, "cross", RmsNorm(b, "norm_cross", x, kEpsilon), encoded, {hidden}, x);
    x = FeedForward(b, x);
  }
  return x;
}

}  // namespace

absl::StatusOr<Graph> T5Model(const T5Sizes& sizes, int64_t batch, int64_t source, int64_t seq) {
  ModelBuilder b("t5", {{batch, "batch"},
                        {source, "source"},
                        {seq, "seq"},
                        {sizes.hidden, "embed"},
                        {sizes.heads, "heads"},
                        {sizes.head_dim, "head_dim"},
                        {sizes.ffn, "mlp"},
                        {sizes.vocab, "vocab"},
                        {sizes.buckets, "bucket"}});
  Tensor words;
  const Tensor encoded = Encode(b, sizes, &words);
  const Tensor x = Decode(b, sizes, words, encoded);
  ModelBuilder::Scope head = b.Head();
  const Tensor table = b.Param("", "vocab embed", NormalInit(0.02));
  CrossEntropyLoss(b, Logits(b, RmsNorm(b, "norm", x, kEpsilon), table));
  return std::move(b).Finish();
}

}  // namespace mgc
