// One function for each set of keys that families share.
#include "frontends/read_config.h"

#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/base/attributes.h"
#include "absl/strings/str_cat.h"
#include "graph/base/json.h"

namespace mgc {
namespace {

constexpr NumberRange kProbability = {0, 1, true, false};
constexpr NumberRange kEpsilon = {0, 1, false, true};
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

// The window's size and its layers, where use_sliding_window is off.
constexpr absl::string_view kHarmlessQwen[] = {"max_window_layers", "sliding_window"};

// "8 or 12": the divisors of `number` nearest to `near` from below and above.
std::string NearestDivisors(int64_t number, int64_t near) {
  int64_t below = std::min(near, number);
  while (number % below != 0) --below;
  int64_t above = std::min(near, number);
  while (number % above != 0) ++above;
  return below == above ? absl::StrCat(below) : absl::StrCat(below, " or ", above);
}

// The keys of all families.
void ReadCommon(JsonObjectReader* reader, absl::string_view positions_key, bool tied_if_absent,
                ModelConfig* c) {
  c->vocab = reader->Integer("vocab_size", kSizeRange);
  c->initializer_range = reader->Number("initializer_range", kStandardDeviation, 0.02);
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

// The size of a head where the file does not give it.
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
      !reader->Failed("num_attention_heads") && c.head_dim % 2 != 0) {
    reader->Problem("head_dim",
                    absl::StrCat("RoPE turns pairs, and a head size of ", c.head_dim,
                                 " is odd; the nearest legal: ", c.head_dim + 1),
                    "C2");
  }
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

// The keys that only one of Llama's kin has, or that are legal in it only so.
void ReadOwnKeys(JsonObjectReader* reader, const ModelConfig& c) {
  switch (c.family) {
    case ModelFamily::kLlama:
      reader->RequireBool("attention_bias", false);
      reader->RequireBool("mlp_bias", false);
      reader->RequireBool("rope_interleaved", false);
      reader->RequireNull("sliding_window", "attention over a window is not supported");
      break;
    case ModelFamily::kQwen3:
      reader->RequireBool("attention_bias", false);
      ABSL_FALLTHROUGH_INTENDED;
    case ModelFamily::kQwen2:
      reader->RequireBool("use_mrope", false);
      reader->RequireBool("use_sliding_window", false);
      if (absl::c_linear_search(ReadLayerTypes(reader, c), true)) {
        reader->Problem("layer_types", "attention over a window is not supported", "C5");
      }
      break;
    default:
      break;
  }
}

// The size of a head where neither the file nor the hidden size gives it; 0: the hidden size does.
int64_t HeadDimOfFamily(ModelFamily family) { return family == ModelFamily::kQwen3 ? 128 : 0; }

int64_t ReadHeadDim(JsonObjectReader* reader, const ModelConfig& c) {
  if (reader->TakeUnlessNull("head_dim") != nullptr)
    return reader->Integer("head_dim", kHeadsRange);
  const int64_t own = HeadDimOfFamily(c.family);
  return own != 0 ? own : HeadDimFromHidden(reader, "hidden_size", "num_attention_heads", c);
}

// Llama's keys, which its kin share.
ModelConfig ReadLlamaLike(ModelFamily family, ConfigReading& file) {
  JsonObjectReader* reader = &file.reader;
  ModelConfig c;
  c.family = family;
  c.layers = reader->Integer("num_hidden_layers", kLayersRange);
  c.hidden = reader->Integer("hidden_size", kSizeRange);
  c.heads = reader->Integer("num_attention_heads", kHeadsRange);
  c.kv_heads = c.heads;
  if (reader->TakeUnlessNull("num_key_value_heads") != nullptr) {
    c.kv_heads = reader->Integer("num_key_value_heads", kHeadsRange);
  }
  c.head_dim = ReadHeadDim(reader, c);
  c.ffn = reader->Integer("intermediate_size", kSizeRange);
  c.embedding_dropout = reader->Number("embd_pdrop", kProbability, 0);
  c.hidden_dropout = reader->Number("resid_pdrop", kProbability, 0);
  c.attention_dropout = reader->Number("attention_dropout", kProbability, 0);
  c.norm_epsilon = reader->Number("rms_norm_eps", kEpsilon, 1e-6);
  reader->Choice("hidden_act", {"silu", "swish"}, 0);
  ReadOwnKeys(reader, c);
  ReadRope(file, &c);
  ReadCommon(reader, "max_position_embeddings", /*tied_if_absent=*/false, &c);
  CheckHeads(c, reader);
  return c;
}

}  // namespace

ModelConfig ReadConfig(ModelFamily family, ConfigReading& file) {
  return family == ModelFamily::kGpt2 ? ReadGpt2(&file.reader) : ReadLlamaLike(family, file);
}

absl::Span<const absl::string_view> HarmlessKeys(ModelFamily family) {
  switch (family) {
    case ModelFamily::kGpt2:
      return kHarmlessGpt2;
    case ModelFamily::kLlama:
      return kHarmlessLlama;
    case ModelFamily::kQwen2:
    case ModelFamily::kQwen3:
      return kHarmlessQwen;
  }
  return {};
}

}  // namespace mgc
