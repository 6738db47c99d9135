// One function for each set of keys that families share.
#include "frontends/read_config.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "graph/base/json.h"

namespace mgc {
namespace {

constexpr NumberRange kStandardDeviation = {0, 1e6};

// n_ctx repeats n_positions; reordering and upcasting change rounding only; without special tokens
// (n_special) it does not matter whether they are predicted.
constexpr absl::string_view kHarmlessGpt2[] = {
    "n_ctx",
    "predict_special_tokens",
    "reorder_and_upcast_attn",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
};

// pretraining_tp cuts products into slices and changes rounding only.
constexpr absl::string_view kHarmlessLlama[] = {"is_llama_config", "pretraining_tp"};

// What has a meaning with rope_type longrope only, and where the hub keeps a model's code.
constexpr absl::string_view kHarmlessPhi3[] = {"auto_map", "original_max_position_embeddings"};

// A classifier's, and what transformers does not read.
constexpr absl::string_view kHarmlessGptNeoX[] = {"attention_probs_dropout_prob",
                                                  "classifier_dropout", "hidden_dropout_prob"};

// A classifier's; feed-forward parts in pieces change rounding only.
constexpr absl::string_view kHarmlessBert[] = {"chunk_size_feed_forward", "classifier_dropout"};

// A pooler's and a decoder's, which a classifier of images lacks.
constexpr absl::string_view kHarmlessVit[] = {"encoder_stride", "pooler_act", "pooler_output_size"};

constexpr absl::string_view kHarmlessGemma2[] = {"cache_implementation"};

// "8 or 12": the divisors of `number` nearest to `near` from below and above.
std::string NearestDivisors(int64_t number, int64_t near) {
  int64_t below = std::min(near, number);
  while (number % below != 0) --below;
  int64_t above = std::min(near, number);
  while (number % above != 0) ++above;
  return below == above ? absl::StrCat(below) : absl::StrCat(below, " or ", above);
}

ModelConfig ReadGpt2(JsonObjectReader* reader) {
  ModelConfig c;
  c.family = ModelFamily::kGpt2;
  c.layers = reader->Integer("n_layer", kLayersRange);
  c.hidden = reader->Integer("n_embd", kSizeRange);
  c.heads = reader->Integer("n_head", kHeadsRange);
  c.kv_heads = c.heads;
  c.head_dim = HeadDimFromHidden(reader, "n_embd", "n_head", c);
  c.ffn = 4 * c.hidden;
  if (reader->TakeUnlessNull("n_inner") != nullptr) c.ffn = reader->Integer("n_inner", kSizeRange);
  c.embedding_dropout = reader->Number("embd_pdrop", kProbability, 0.1);
  c.hidden_dropout = reader->Number("resid_pdrop", kProbability, 0.1);
  c.attention_dropout = reader->Number("attn_pdrop", kProbability, 0.1);
  c.norm_epsilon = reader->Number("layer_norm_epsilon", kEpsilon, 1e-5);
  reader->Choice("activation_function", {"gelu_new", "gelu_pytorch_tanh"}, 0);
  reader->RequireBool("scale_attn_weights", true);
  reader->RequireBool("scale_attn_by_inverse_layer_idx", false);
  reader->RequireBool("add_cross_attention", false);
  reader->Integer("n_special", {0, 0}, 0);
  ReadCommon(reader, "n_positions", /*tied_if_absent=*/true, &c);
  return c;
}

// C1, C2: what the numbers of heads must be to each other.
void CheckHeads(const ModelConfig& c, JsonObjectReader* reader) {
  if (!reader->Failed("num_attention_heads") && !reader->Failed("num_key_value_heads") &&
      c.heads % c.kv_heads != 0) {
    reader->Problem(
        "num_key_value_heads",
        absl::StrCat(c.kv_heads, " kv heads do not divide ", c.heads,
                     " heads; the nearest legal: ", NearestDivisors(c.heads, c.kv_heads)),
        "C1");
  }
  if (!reader->Failed("head_dim") && !reader->Failed("hidden_size") &&
      !reader->Failed("num_attention_heads") && c.head_dim % 2 != 0 && c.rotary_share == 1) {
    reader->Problem("head_dim",
                    absl::StrCat("RoPE turns pairs, and a head size of ", c.head_dim,
                                 " is odd; the nearest legal: ", c.head_dim + 1),
                    "C2");
  }
}

// C6: the elements that RoPE turns are pairs.
void CheckRotaryShare(const ModelConfig& c, absl::string_view key, JsonObjectReader* reader) {
  const int64_t dims = RotaryDims(c);
  if (c.rotary_share == 1 || (dims >= 2 && dims % 2 == 0)) return;
  reader->Problem(
      key,
      absl::StrCat("RoPE turns pairs, and ", c.rotary_share, " of a head of ", c.head_dim,
                   " elements are ", dims, "; legal is an even number of at least 2"),
      "C6");
}

// Whether each layer's attention is over a window, by layer_types; empty where the file says
// nothing.
std::vector<bool> ReadLayerTypes(JsonObjectReader* reader, const ModelConfig& c) {
  const JsonValue* value = reader->TakeUnlessNull("layer_types");
  if (value == nullptr) return {};
  std::vector<bool> windowed;
  bool legal = value->kind == JsonValue::Kind::kArray;
  for (const JsonValue& item : value->items) {
    windowed.push_back(item.text == "sliding_attention");
    legal &=
        item.kind == JsonValue::Kind::kString && (windowed.back() || item.text == "full_attention");
  }
  if (legal && static_cast<int64_t>(windowed.size()) == c.layers) return windowed;
  if (reader->Failed("num_hidden_layers")) return {};
  reader->Problem("layer_types",
                  absl::StrCat("layer_types must be full_attention or sliding_attention for each "
                               "of the ",
                               c.layers, " layers"),
                  "C5");
  return {};
}

// A number of keys or a cap; null: none, 0.
int64_t IntegerOrNull(JsonObjectReader* reader, absl::string_view key, int64_t absent) {
  if (reader->Take(key) == nullptr) return absent;
  return reader->TakeUnlessNull(key) == nullptr ? 0 : reader->Integer(key, kSizeRange);
}
double CapOrNull(JsonObjectReader* reader, absl::string_view key, double absent) {
  constexpr NumberRange kCap = {0, 1e9, false, true};
  if (reader->Take(key) == nullptr) return absent;
  return reader->TakeUnlessNull(key) == nullptr ? 0 : reader->Number(key, kCap);
}

// Windows of `size` keys (0: none) in the layers that layer_types names, or in those of `types`
// where the file has none.
void ReadWindows(JsonObjectReader* reader, int64_t size, std::vector<bool> types, ModelConfig* c) {
  const std::vector<bool> given = ReadLayerTypes(reader, *c);
  if (size == 0 && absl::c_linear_search(given, true)) {
    reader->Problem("layer_types", "a layer is to attend to a window, but no window is on", "C5");
  }
  if (!given.empty()) types = given;
  if (size == 0 || !absl::c_linear_search(types, true)) return;
  c->window = size;
  size_t period = 1;  // the shortest that repeats
  const auto repeats = [&] {
    for (size_t i = period; i < types.size(); ++i) {
      if (types[i] != types[i - period]) return false;
    }
    return true;
  };
  while (!repeats()) ++period;
  types.resize(period);
  if (period > 1) c->windowed = std::move(types);
}

void ReadQwenWindows(JsonObjectReader* reader, ModelConfig* c) {
  const bool on = reader->Bool("use_sliding_window", false);
  const int64_t size = IntegerOrNull(reader, "sliding_window", 4096);
  const int64_t full = reader->Integer("max_window_layers", {0, kSizeRange.high}, 28);
  std::vector<bool> types;
  for (int64_t layer = 0; layer < c->layers; ++layer) types.push_back(layer >= full);
  ReadWindows(reader, on ? size : 0, std::move(types), c);
}

// The released files of the first Gemma say `gelu`, and mean the tanh form.
void ReadGemmaActivation(JsonObjectReader* reader, bool first) {
  const std::vector<absl::string_view> legal = {"gelu_pytorch_tanh", "gelu_new", "gelu"};
  if (reader->TakeUnlessNull("hidden_act") != nullptr) {
    reader->Choice("hidden_act", absl::MakeConstSpan(legal).first(first ? 3 : 2), 0);
  }
  if (reader->TakeUnlessNull("hidden_activation") != nullptr) {
    reader->Choice("hidden_activation", absl::MakeConstSpan(legal).first(2), 0);
  }
  reader->RequireBool("use_bidirectional_attention", false);
}

void ReadGemma2(JsonObjectReader* reader, ModelConfig* c) {
  c->query_scalar = reader->Number("query_pre_attn_scalar", {0, 1e9, false, true}, 256);
  c->score_cap = CapOrNull(reader, "attn_logit_softcapping", 50);
  c->logit_cap = CapOrNull(reader, "final_logit_softcapping", 30);
  const int64_t size = IntegerOrNull(reader, "sliding_window", 4096);
  std::vector<bool> types;
  for (int64_t layer = 0; layer < c->layers; ++layer) types.push_back(layer % 2 == 0);
  ReadWindows(reader, size, std::move(types), c);
}

// The keys that not all of Llama's kin have, or that are legal in some only so.
void ReadOwnKeys(JsonObjectReader* reader, ModelConfig* c) {
  const ModelFamily family = c->family;
  const bool gemma = family == ModelFamily::kGemma || family == ModelFamily::kGemma2;
  if (gemma) {
    ReadGemmaActivation(reader, family == ModelFamily::kGemma);
  } else {
    reader->Choice("hidden_act", {"silu", "swish"}, 0);
  }
  if (family != ModelFamily::kQwen2 && family != ModelFamily::kMistral) {
    reader->RequireBool("attention_bias", false);
  }
  if (family == ModelFamily::kLlama) {
    reader->RequireBool("mlp_bias", false);
    reader->RequireBool("rope_interleaved", false);
    reader->RequireNull("sliding_window", "Llama has none; model_type mistral has");
  }
  if (family == ModelFamily::kQwen2 || family == ModelFamily::kQwen3) {
    reader->RequireBool("use_mrope", false);
    ReadQwenWindows(reader, c);
  }
  if (family == ModelFamily::kMistral) c->window = IntegerOrNull(reader, "sliding_window", 4096);
  if (family == ModelFamily::kPhi3) c->window = IntegerOrNull(reader, "sliding_window", 0);
  if (family == ModelFamily::kGemma2) ReadGemma2(reader, c);
}

// What a family has where its file says nothing.
struct Absent {
  int64_t head_dim = 0;  // 0: hidden / heads
  int64_t kv_heads = 0;  // 0: as many as heads
  double norm_epsilon = 1e-6;
  bool tied = false;
};

Absent AbsentOf(ModelFamily family) {
  switch (family) {
    case ModelFamily::kQwen2:
      return {0, 32};
    case ModelFamily::kQwen3:
      return {128, 32};
    case ModelFamily::kMistral:
      return {0, 8};
    case ModelFamily::kPhi3:
      return {0, 0, 1e-5};
    case ModelFamily::kGemma:
      return {256, 16, 1e-6, true};
    case ModelFamily::kGemma2:
      return {256, 4, 1e-6, true};
    default:
      return {};
  }
}

int64_t ReadKvHeads(JsonObjectReader* reader, const ModelConfig& c) {
  constexpr absl::string_view kKey = "num_key_value_heads";
  const int64_t own = AbsentOf(c.family).kv_heads;
  if (reader->TakeUnlessNull(kKey) != nullptr) return reader->Integer(kKey, kHeadsRange);
  return own != 0 && reader->Take(kKey) == nullptr ? own : c.heads;
}

int64_t ReadHeadDim(JsonObjectReader* reader, const ModelConfig& c) {
  const int64_t own = AbsentOf(c.family).head_dim;
  if (reader->TakeUnlessNull("head_dim") != nullptr) {
    return reader->Integer("head_dim", kHeadsRange);
  }
  return own != 0 ? own : HeadDimFromHidden(reader, "hidden_size", "num_attention_heads", c);
}

ModelConfig ReadGptNeoX(ConfigReading& file) {
  JsonObjectReader* reader = &file.reader;
  ModelConfig c;
  c.family = ModelFamily::kGptNeoX;
  c.layers = reader->Integer("num_hidden_layers", kLayersRange);
  c.hidden = reader->Integer("hidden_size", kSizeRange);
  c.heads = reader->Integer("num_attention_heads", kHeadsRange);
  c.kv_heads = c.heads;
  c.head_dim = HeadDimFromHidden(reader, "hidden_size", "num_attention_heads", c);
  c.ffn = reader->Integer("intermediate_size", kSizeRange);
  c.hidden_dropout = reader->Number("hidden_dropout", kProbability, 0);
  c.embedding_dropout = c.hidden_dropout;
  c.attention_dropout = reader->Number("attention_dropout", kProbability, 0);
  c.norm_epsilon = reader->Number("layer_norm_eps", kEpsilon, 1e-5);
  c.tanh_gelu =
      reader->Choice("hidden_act", {"gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"}, 0) != 0;
  c.parallel_residual = reader->Bool("use_parallel_residual", true);
  reader->RequireBool("attention_bias", true);
  ReadRope({"rotary_emb_base", "rotary_pct", 0.25}, file, &c);
  ReadCommon(reader, "max_position_embeddings", /*tied_if_absent=*/false, &c);
  CheckHeads(c, reader);
  CheckRotaryShare(c, "rotary_pct", reader);
  return c;
}

// Llama's keys, which its kin share.
ModelConfig ReadLlamaLike(ModelFamily family, ConfigReading& file) {
  JsonObjectReader* reader = &file.reader;
  ModelConfig c;
  c.family = family;
  c.layers = reader->Integer("num_hidden_layers", kLayersRange);
  c.hidden = reader->Integer("hidden_size", kSizeRange);
  c.heads = reader->Integer("num_attention_heads", kHeadsRange);
  c.kv_heads = ReadKvHeads(reader, c);
  c.head_dim = ReadHeadDim(reader, c);
  c.ffn = reader->Integer("intermediate_size", kSizeRange);
  c.embedding_dropout = reader->Number("embd_pdrop", kProbability, 0);
  c.hidden_dropout = reader->Number("resid_pdrop", kProbability, 0);
  c.attention_dropout = reader->Number("attention_dropout", kProbability, 0);
  c.norm_epsilon = reader->Number("rms_norm_eps", kEpsilon, AbsentOf(family).norm_epsilon);
  ReadOwnKeys(reader, &c);
  RopeKeys rope;
  if (family == ModelFamily::kPhi3) rope.share = "partial_rotary_factor";
  ReadRope(rope, file, &c);
  ReadCommon(reader, "max_position_embeddings", AbsentOf(family).tied, &c);
  CheckHeads(c, reader);
  CheckRotaryShare(c, "partial_rotary_factor", reader);
  return c;
}

}  // namespace

void ReadInitializer(JsonObjectReader* reader, ModelConfig* c) {
  c->initializer_range = reader->Number("initializer_range", kStandardDeviation, 0.02);
}

void ReadCommon(JsonObjectReader* reader, absl::string_view positions_key, bool tied_if_absent,
                ModelConfig* c) {
  c->vocab = reader->Integer("vocab_size", kSizeRange);
  ReadInitializer(reader, c);
  c->tie_embeddings = reader->Bool("tie_word_embeddings", tied_if_absent);
  c->max_positions = reader->Integer(positions_key, kSizeRange);
  c->seq_length = reader->Integer("seq_length", kSizeRange, c->max_positions);
  reader->RequireBool("is_encoder_decoder", false);
  if (!reader->Failed(positions_key) && c->seq_length > c->max_positions) {
    reader->Problem(
        "seq_length",
        absl::StrCat("the sequence length ", c->seq_length, " is above the longest position ",
                     c->max_positions, "; legal is 1 to ", c->max_positions),
        "M10");
  }
}

int64_t HeadDimFromHidden(JsonObjectReader* reader, absl::string_view hidden_key,
                          absl::string_view heads_key, const ModelConfig& c) {
  if (!reader->Failed(hidden_key) && !reader->Failed(heads_key) && c.hidden % c.heads != 0) {
    reader->Problem(heads_key,
                    absl::StrCat(c.heads, " heads do not divide the hidden size ", c.hidden,
                                 "; the nearest legal: ", NearestDivisors(c.hidden, c.heads)),
                    "M3");
    return 2;  // a stand-in against which nothing else is wrong
  }
  return std::max<int64_t>(c.hidden / c.heads, 1);
}

ModelConfig ReadConfig(ModelFamily family, ConfigReading& file) {
  switch (family) {
    case ModelFamily::kGpt2:
      return ReadGpt2(&file.reader);
    case ModelFamily::kGptNeoX:
      return ReadGptNeoX(file);
    case ModelFamily::kBert:
      return ReadBert(&file.reader);
    case ModelFamily::kVit:
      return ReadVit(&file.reader);
    default:
      return ReadLlamaLike(family, file);
  }
}

absl::Span<const absl::string_view> HarmlessKeys(ModelFamily family) {
  switch (family) {
    case ModelFamily::kGpt2:
      return kHarmlessGpt2;
    case ModelFamily::kLlama:
      return kHarmlessLlama;
    case ModelFamily::kPhi3:
      return kHarmlessPhi3;
    case ModelFamily::kGptNeoX:
      return kHarmlessGptNeoX;
    case ModelFamily::kGemma2:
      return kHarmlessGemma2;
    case ModelFamily::kBert:
      return kHarmlessBert;
    case ModelFamily::kVit:
      return kHarmlessVit;
    default:
      return {};
  }
}

}  // namespace mgc
