#include "tests/published/stored_scores.h"

#include <utility>

#include "frontends/builder.h"
#include "frontends/layers.h"
#include "frontends/losses.h"

namespace mgc {
namespace {

// The keys' dim has no name: strategies cut the queries' `seq`.
Tensor StoredScores(ModelBuilder& b, Tensor x, Tensor residual, double dropout) {
  ModelBuilder::Scope scope = b.In("attention");
  LinearOptions projection;
  projection.bias = true;
  const Tensor q = Linear(b, "q", x, "embed -> heads head_dim", projection);
  const Tensor k = Linear(b, "k", x, "embed -> heads head_dim", projection);
  const Tensor v = Linear(b, "v", x, "embed -> heads head_dim", projection);
  const Tensor scores =
      b.Op("matmul", {q, k}, {{"spec", std::string("b s h d, b t h d -> b h s t")}});
  const Tensor kept = Dropout(b, "dropout", b.Op("softmax", {scores}), dropout);
  const Tensor mixed =
      b.Op("matmul", {kept, v}, {{"spec", std::string("b h s t, b t h d -> b s h d")}});
  projection.dropout = dropout;
  projection.residual = residual;
  return Linear(b, "out", mixed, "heads head_dim -> embed", projection);
}

}  // namespace

absl::StatusOr<Graph> BuildWithStoredScores(const ModelConfig& config, int64_t batch, int64_t seq) {
  ModelBuilder b("stored_scores", {{batch, "batch"},
                                   {seq, "seq"},
                                   {config.hidden, "embed"},
                                   {config.heads, "heads"},
                                   {config.head_dim, "head_dim"},
                                   {config.ffn, "mlp"},
                                   {config.vocab, "vocab"},
                                   {config.max_positions, "position"}});
  MlpOptions mlp;
  mlp.bias = true;
  mlp.out_dropout = config.hidden_dropout;
  Tensor table, x;
  {
    ModelBuilder::Scope scope = b.EmbeddingLayer();
    const Tensor words = Embedding(b, "word", b.Tokens(), "vocab embed", 0.02, &table);
    const Tensor places = Embedding(b, "position", Positions(b), "position embed");
    x = Dropout(b, "dropout", Add(b, {words, places}), config.embedding_dropout);
  }
  for (int i = 0; i < static_cast<int>(config.layers); ++i) {
    ModelBuilder::Scope scope = b.Layer(i);
    x = StoredScores(b, LayerNorm(b, "norm1", x), x, config.attention_dropout);
    x = Mlp(b, "mlp", LayerNorm(b, "norm2", x), x, mlp);
  }
  ModelBuilder::Scope scope = b.Head();
  CrossEntropyLoss(b, Logits(b, LayerNorm(b, "norm", x), table));
  return std::move(b).Finish();
}

}  // namespace mgc
