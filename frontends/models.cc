#include "frontends/models.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontends/builder.h"
#include "frontends/families.h"
#include "frontends/layers.h"
#include "frontends/losses.h"
#include "graph/base/diagnostic.h"
#include "graph/base/status.h"
#include "graph/ir/results.h"
#include "graph/ir/vocabulary.h"

namespace mgc {
namespace {

// One model being written: what every part needs.
struct Writer {
  ModelBuilder& b;
  const ModelConfig& config;
  const FamilyTraits& traits;
  const ModelOptions& options;
  double std;      // of weights and tables
  double out_std;  // of projections into the residual stream
};

std::vector<Dim> NamedDims(const ModelConfig& config, int64_t batch, int64_t seq,
                           const ModelOptions& options) {
  return {{batch, "batch"},
          {seq, "seq"},
          {config.hidden, "embed"},
          {config.heads, "heads"},
          {config.kv_heads, "kv_heads"},
          {config.head_dim, "head_dim"},
          {config.ffn, "mlp"},
          {config.vocab, "vocab", options.vocab_multiple},
          {config.max_positions, "position"},  // rows of the table of learned ones
          {std::max<int64_t>(options.kept, 1), "kept"}};
}

bool Keeps(const ModelOptions& options) {
  return options.next_token == NextToken::kPrompt || options.next_token == NextToken::kToken;
}

// Learned positions of one token a sample.
Tensor PositionAtPlace(ModelBuilder& b, int64_t embed, double std) {
  const Tensor rows =
      Embedding(b, "position", b.Data(kPlaceInput, "batch", DType::kI64), "position embed", std);
  return b.Op("reshape", {rows},
              {{"sizes", std::vector<int64_t>{b.Size("batch"), 1, embed}},
               {"names", std::string("batch seq embed")}});
}

Tensor Norm(const Writer& w, absl::string_view name, Tensor x) {
  return w.traits.layer_norm ? LayerNorm(w.b, name, x, w.config.norm_epsilon)
                             : RmsNorm(w.b, name, x, w.config.norm_epsilon);
}

// Word embeddings, with those of the positions added if they are learned. `table` receives the
// words' table.
Tensor EmbedTokens(const Writer& w, Tensor* table) {
  ModelBuilder& b = w.b;
  ModelBuilder::Scope scope = b.EmbeddingLayer();
  Tensor x = Embedding(b, "word", b.Tokens(), "vocab embed", w.std, table);
  if (w.traits.learned_positions && w.options.next_token == NextToken::kToken) {
    x = Add(b, {x, PositionAtPlace(b, w.config.hidden, w.std)});
  } else if (w.traits.learned_positions) {
    const Tensor positions = w.options.restart_positions
                                 ? b.Data(kPositionsInput, "batch seq", DType::kI64)
                                 : Positions(b);
    x = Add(b, {x, Embedding(b, "position", positions, "position embed", w.std)});
  }
  if (w.traits.scaled_embedding) {
    x = b.Op("scale", {x}, {{"value", std::sqrt(static_cast<double>(w.config.hidden))}});
  }
  return Dropout(b, "dropout", x, w.config.embedding_dropout);
}

RopeOptions RopeOf(const ModelConfig& config) {
  RopeOptions rope;
  rope.theta = config.rope_theta;
  if (RotaryDims(config) < config.head_dim) rope.dims = RotaryDims(config);
  if (const auto& scaling = config.rope_scaling; scaling) {
    rope.llama3 = RopeOptions::Llama3{scaling->factor, scaling->low_freq_factor,
                                      scaling->high_freq_factor, scaling->original_max_positions};
  }
  return rope;
}

AttentionOptions AttentionOf(const Writer& w, int layer) {
  AttentionOptions options;
  options.qkv_bias = w.traits.qkv_bias;
  options.out_bias = w.traits.out_bias;
  if (w.traits.qk_norm) options.qk_norm = w.config.norm_epsilon;
  options.std = w.std;
  options.out_std = w.out_std;
  options.dropout = w.config.attention_dropout;
  options.out_dropout = w.config.hidden_dropout;
  if (!w.traits.learned_positions) options.rope = RopeOf(w.config);
  if (w.config.query_scalar != 0) options.scale = 1 / std::sqrt(w.config.query_scalar);
  options.cap = w.config.score_cap;
  // A window over the whole sequence is none.
  const int64_t window = WindowOfLayer(w.config, layer);
  if (window < w.b.Size("seq")) options.window = window;
  return options;
}

MlpOptions MlpOf(const Writer& w) {
  MlpOptions options;
  options.activation = ActivationOf(w.config);
  options.bias = w.traits.mlp_bias;
  options.std = w.std;
  options.out_std = w.out_std;
  options.out_dropout = w.config.hidden_dropout;
  return options;
}

// Of a model that is asked only one row of each sample is looked at behind the last attention: no
// other goes on from there.
bool EndsInRow(const Writer& w, int layer) {
  return w.options.next_token != NextToken::kNone && layer + 1 == w.config.layers;
}

Tensor Block(const Writer& w, int layer, Tensor x) {
  AttentionOptions attention = AttentionOf(w, layer);
  if (w.options.mask_documents) {
    attention.segments = w.b.Data(kDocumentsInput, "batch seq", DType::kI64);
  }
  if (Keeps(w.options)) attention.place = w.b.Data(kPlaceInput, "batch", DType::kI64);
  if (w.options.next_token == NextToken::kToken) {
    const int64_t window = WindowOfLayer(w.config, layer);
    attention.sees = w.b.Data(kSeesInput, "batch seq", DType::kI64);
    attention.seen =
        w.b.Data(SeenInput(window < w.options.kept ? window : 0), "batch kept", DType::kI64);
  }
  const MlpOptions mlp = MlpOf(w);
  const Tensor before = Norm(w, "norm1", x);
  if (EndsInRow(w, layer)) {
    attention.row = w.b.Data(kRowInput, "batch seq", DType::kF32);
    x = ChosenRow(w.b, attention.row, x);
  }
  if (w.traits.post_norms) {
    const Tensor mixed = Attention(w.b, "attention", before, Tensor(), attention);
    x = Add(w.b, {x, Norm(w, "attention.norm", mixed)});
    return Add(w.b, {x, Norm(w, "mlp.norm", Mlp(w.b, "mlp", Norm(w, "norm2", x), Tensor(), mlp))});
  }
  const Tensor mixed = Attention(w.b, "attention", before, x, attention);
  return Mlp(w.b, "mlp", Norm(w, "norm2", w.config.parallel_residual ? x : mixed), mixed, mlp);
}

// Of the one row of each sample that goes on (EndsInRow).
void HeadOfRow(const Writer& w, Tensor row, Tensor table) {
  ModelBuilder& b = w.b;
  const Tensor logits = SoftCap(b, Logits(b, Norm(w, "norm", row), table), w.config.logit_cap);
  b.Report(kLogitsResult, logits);
  const Tensor weights = b.Data(kWeightsInput, "batch", DType::kF32);
  LossTerm(b, kLossReport, CrossEntropy(b, logits, b.Data(kTargetsInput, "batch", DType::kI64)),
           weights);
  ReportCount(b, weights);
}

void HeadAndLoss(const Writer& w, Tensor x, Tensor table) {
  ModelBuilder& b = w.b;
  ModelBuilder::Scope scope = b.Head();
  if (!w.config.tie_embeddings) table = b.Param("", "vocab embed", NormalInit(w.std));
  if (w.options.next_token != NextToken::kNone) return HeadOfRow(w, x, table);
  CrossEntropyLoss(b, SoftCap(b, Logits(b, Norm(w, "norm", x), table), w.config.logit_cap));
}

// --- Encoders

Tensor WithPositions(const Writer& w, Tensor x) {
  return Add(w.b, {x, Embedding(w.b, "position", Positions(w.b), "position embed", w.std)});
}

// Words, segments and positions, normalized. `table` receives the words' table.
Tensor EmbedMaskedWords(const Writer& w, Tensor* table) {
  ModelBuilder& b = w.b;
  const Tensor words = Embedding(b, "word", b.Tokens(), "vocab embed", w.std, table);
  const Tensor segments = b.Data("segments", "batch seq", DType::kI64);
  const Tensor kinds = Embedding(b, "segment", segments, "segment embed", w.std);
  return Norm(w, "norm", WithPositions(w, Add(b, {words, kinds})));
}

// A projection of every patch, a learned row for the class before them, and positions.
Tensor EmbedPatches(const Writer& w) {
  ModelBuilder& b = w.b;
  LinearOptions projection;
  projection.bias = true;
  projection.std = w.std;
  const Tensor patches = b.Data("patches", "batch patch pixel", DType::kF32);
  const Tensor rows = Linear(b, "patch", patches, "pixel -> embed", projection);
  const Tensor row = b.Param("class", "embed", NormalInit(w.std));
  const std::vector<int64_t> sizes = {b.Size("batch"), 1};
  const Tensor first =
      b.Op("broadcast", {row},
           {{"dims", std::vector<int64_t>{0, 1}}, {"sizes", sizes}, {"names", "batch seq"}});
  return WithPositions(w, b.Op("concat", {first, rows}, {{"dim", int64_t{1}}}));
}

Tensor EmbedEncoder(const Writer& w, Tensor* table) {
  ModelBuilder::Scope scope = w.b.EmbeddingLayer();
  const Tensor x = w.traits.images ? EmbedPatches(w) : EmbedMaskedWords(w, table);
  return Dropout(w.b, "dropout", x, w.config.embedding_dropout);
}

Tensor EncoderBlock(const Writer& w, int layer, Tensor x) {
  AttentionOptions attention = AttentionOf(w, layer);
  attention.causal = false;
  if (w.traits.masked_words) attention.segments = w.b.Data("mask", "batch seq", DType::kI64);
  const MlpOptions mlp = MlpOf(w);
  if (w.traits.norms_of_sums) {
    x = Norm(w, "norm1", Attention(w.b, "attention", x, x, attention));
    return Norm(w, "norm2", Mlp(w.b, "mlp", x, x, mlp));
  }
  x = Attention(w.b, "attention", Norm(w, "norm1", x), x, attention);
  return Mlp(w.b, "mlp", Norm(w, "norm2", x), x, mlp);
}

// The words left out: a transform and its norm, and a bias for every word.
Tensor MaskedWordLogits(const Writer& w, Tensor x, Tensor table) {
  ModelBuilder& b = w.b;
  LinearOptions projection;
  projection.bias = true;
  projection.std = w.std;
  const Tensor hidden = Linear(b, "transform", x, "embed -> embed", projection);
  const Tensor active = b.Op(w.config.tanh_gelu ? "gelu" : "gelu_erf", {hidden});
  const Tensor logits = Logits(b, Norm(w, "norm", active), table);
  return Add(b, {logits, b.Param("bias", "vocab", ZerosInit())});
}

// One label for a sample, by its class row.
void ClassLoss(const Writer& w, Tensor x) {
  ModelBuilder& b = w.b;
  const Tensor row =
      b.Op("slice", {x}, {{"dim", int64_t{1}}, {"begin", int64_t{0}}, {"end", int64_t{1}}});
  const std::vector<int64_t> sizes = {b.Size("batch"), w.config.hidden};
  const Tensor flat = b.Op("reshape", {row}, {{"sizes", sizes}, {"names", "batch embed"}});
  const Tensor table = b.Param("", "vocab embed", NormalInit(w.std));
  const Tensor logits =
      Add(b, {Logits(b, Norm(w, "norm", flat), table), b.Param("bias", "vocab", ZerosInit())});
  const Tensor weights = b.Data(kWeightsInput, "batch", DType::kF32);
  LossTerm(b, kLossReport, CrossEntropy(b, logits, b.Data("labels", "batch", DType::kI64)),
           weights);
  ReportCount(b, weights);
}

void EncoderHeadAndLoss(const Writer& w, Tensor x, Tensor table) {
  ModelBuilder& b = w.b;
  ModelBuilder::Scope scope = b.Head();
  if (w.traits.images) return ClassLoss(w, x);
  if (!w.config.tie_embeddings) table = b.Param("", "vocab embed", NormalInit(w.std));
  CrossEntropyOptions options;
  options.ignore = kIgnoredTarget;
  CrossEntropyLoss(b, MaskedWordLogits(w, x, table), options);
}

// The dims of words, and those that encoders have beside them.
std::vector<Dim> AllDims(const ModelConfig& config, std::vector<Dim> dims) {
  if (config.segments > 0) dims.push_back({config.segments, "segment"});
  if (config.image.patch > 0) {
    dims.push_back({PatchesOf(config.image), "patch"});
    dims.push_back({PatchSize(config.image), "pixel"});
  }
  return dims;
}

absl::Status CheckConfig(const ModelConfig& config, int64_t seq) {
  if (config.layers < 1 || config.layers > kMaxModelLayers) {
    return absl::InvalidArgumentError(
        absl::StrCat(config.layers, " layers; a model has 1 to ", kMaxModelLayers));
  }
  if (seq > config.max_positions) {
    return absl::InvalidArgumentError(absl::StrCat(
        "sequences of ", seq, " tokens, but the model has ", config.max_positions, " positions"));
  }
  if (TraitsOf(config.family).images && seq != config.max_positions) {
    return absl::InvalidArgumentError(absl::StrCat("sequences of ", seq, ", but an image is ",
                                                   config.max_positions,
                                                   ": its patches and the class row"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckModelOptions(const ModelConfig& config, const ModelOptions& options) {
  const FamilyTraits& traits = TraitsOf(config.family);
  Diagnostics violations;
  if (options.mask_documents && traits.bidirectional) {
    violations.Add("", "",
                   absl::StrCat(traits.model_type,
                                " reads no text of documents one behind the "
                                "other, between which attention could be masked"));
  }
  if (options.restart_positions && (traits.bidirectional || !traits.learned_positions)) {
    violations.Add(
        "", "",
        absl::StrCat(traits.model_type,
                     traits.bidirectional
                         ? " reads no text of documents, with which positions could restart"
                         : " has no table of positions to begin anew with a document: "
                           "RoPE sees differences of positions alone"));
  }
  if (options.next_token != NextToken::kNone && traits.bidirectional) {
    violations.Add("", "", absl::StrCat(traits.model_type, " predicts no next token"));
  }
  if (Keeps(options) && (options.kept < 1 || options.kept > config.max_positions)) {
    violations.Add(
        "", "",
        absl::StrCat("room for the keys and values of ", options.kept,
                     " tokens; the model has 1 to ", config.max_positions, " positions"));
  }
  return violations.ToStatus();
}

absl::Status CheckAskedLength(const ModelOptions& options, int64_t seq) {
  if (options.next_token == NextToken::kToken && seq != 1) {
    return absl::InvalidArgumentError(absl::StrCat("one token more, and sequences of ", seq));
  }
  if (options.next_token == NextToken::kPrompt && seq > options.kept) {
    return absl::InvalidArgumentError(absl::StrCat(
        "prompts of ", seq, " tokens, and room for the keys and values of ", options.kept));
  }
  return absl::OkStatus();
}

absl::StatusOr<Graph> BuildModel(const ModelConfig& config, int64_t batch, int64_t seq,
                                 const ModelOptions& options) {
  MGC_RETURN_IF_ERROR(CheckConfig(config, seq));
  MGC_RETURN_IF_ERROR(CheckModelOptions(config, options));
  MGC_RETURN_IF_ERROR(CheckAskedLength(options, seq));
  const FamilyTraits& traits = TraitsOf(config.family);
  ModelBuilder b(traits.model_type, AllDims(config, NamedDims(config, batch, seq, options)));
  if (options.next_token != NextToken::kNone) b.KeepParams();
  absl::optional<Adapter> adapter;
  if (options.adapter) b.AdaptWith(&adapter.emplace(*options.adapter));
  const double out_std =
      config.initializer_range / std::sqrt(2.0 * static_cast<double>(config.layers));
  const Writer w{b, config, traits, options, config.initializer_range, out_std};
  Tensor table;
  Tensor x = traits.bidirectional ? EmbedEncoder(w, &table) : EmbedTokens(w, &table);
  for (int i = 0; i < static_cast<int>(config.layers); ++i) {
    ModelBuilder::Scope layer = b.Layer(i);
    x = traits.bidirectional ? EncoderBlock(w, i, x) : Block(w, i, x);
  }
  if (traits.bidirectional) {
    EncoderHeadAndLoss(w, x, table);
  } else {
    HeadAndLoss(w, x, table);
  }
  return std::move(b).Finish();
}

}  // namespace mgc
