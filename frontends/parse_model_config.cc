// ParseModelConfig: one function a family, each a list of the keys that the family has.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontends/model_config.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/json_reader.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

// Limits far above any model, so that products of a few sizes stay in range.
constexpr IntegerRange kLayers = {1, kMaxModelLayers};
constexpr IntegerRange kHeads = {1, 1 << 16};
constexpr IntegerRange kSize = {1, 1 << 24};
constexpr NumberRange kProbability = {0, 1, true, false};
constexpr NumberRange kEpsilon = {0, 1, false, true};
constexpr NumberRange kStandardDeviation = {0, 1e6};
constexpr NumberRange kTheta = {0, 1e15, false, true};
constexpr NumberRange kFactor = {1, 1e9};
constexpr NumberRange kFrequencyFactor = {0, 1e9, false, true};
constexpr double kMaxParameters = 1e15;

constexpr absl::string_view kHarmless[] = {
    "_attn_implementation",
    "_name_or_path",
    "architectures",
    "attn_implementation",
    "bos_token_id",
    "dtype",
    "eos_token_id",
    "finetuning_task",
    "gradient_checkpointing",
    "id2label",
    "is_decoder",
    "label2id",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "pad_token_id",
    "return_dict",
    "sep_token_id",
    "task_specific_params",
    "tokenizer_class",
    "torch_dtype",
    "transformers.js_config",
    "transformers_version",
    "use_cache",
};

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

// "8 or 12": the divisors of `number` nearest to `near` from below and above.
std::string NearestDivisors(int64_t number, int64_t near) {
  int64_t below = std::min(near, number);
  while (number % below != 0) --below;
  int64_t above = std::min(near, number);
  while (number % above != 0) ++above;
  return below == above ? absl::StrCat(below) : absl::StrCat(below, " or ", above);
}

// The keys of both families.
void ReadCommon(JsonObjectReader* reader, absl::string_view positions_key, bool tied_if_absent,
                ModelConfig* c) {
  c->vocab = reader->Integer("vocab_size", kSize);
  c->initializer_range = reader->Number("initializer_range", kStandardDeviation, 0.02);
  c->tie_embeddings = reader->Bool("tie_word_embeddings", tied_if_absent);
  c->max_positions = reader->Integer(positions_key, kSize);
  c->seq_length = reader->Integer("seq_length", kSize, c->max_positions);
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
  c.layers = reader->Integer("n_layer", kLayers);
  c.hidden = reader->Integer("n_embd", kSize);
  c.heads = reader->Integer("n_head", kHeads);
  c.kv_heads = c.heads;
  c.head_dim = HeadDimFromHidden(reader, "n_embd", "n_head", c);
  c.ffn = 4 * c.hidden;
  if (reader->TakeUnlessNull("n_inner") != nullptr) c.ffn = reader->Integer("n_inner", kSize);
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

// The scaling that `value` gives, either dialect's object, or nothing if that is the default one.
// `theta` is read from the newer dialect's.
absl::optional<Llama3RopeScaling> ReadRopeScaling(const JsonValue& value, absl::string_view prefix,
                                                  double* theta, FileDiagnostics* problems) {
  JsonObjectReader reader(value, prefix, problems);
  if (theta != nullptr) *theta = reader.Number("rope_theta", kTheta, 10000);
  absl::string_view type_key =
      value.Find("type") != nullptr && value.Find("rope_type") == nullptr ? "type" : "rope_type";
  bool llama3 = reader.Choice(type_key, {"default", "llama3"}, 0) == 1;
  if (reader.Failed(type_key))
    return absl::nullopt;  // the keys of another type would only add noise
  absl::optional<Llama3RopeScaling> scaling;
  if (llama3) {
    scaling.emplace();
    scaling->factor = reader.Number("factor", kFactor);
    scaling->low_freq_factor = reader.Number("low_freq_factor", kFrequencyFactor);
    scaling->high_freq_factor = reader.Number("high_freq_factor", kFrequencyFactor);
    scaling->original_max_positions = reader.Integer("original_max_position_embeddings", kSize);
    if (!reader.Failed("low_freq_factor") && !reader.Failed("high_freq_factor") &&
        scaling->low_freq_factor >= scaling->high_freq_factor) {
      reader.Problem("low_freq_factor",
                     absl::StrCat("low_freq_factor ", scaling->low_freq_factor,
                                  " must be below high_freq_factor ", scaling->high_freq_factor),
                     "C4");
    }
  }
  if (type_key == "rope_type" && value.Find("type") != nullptr)
    reader.Choice("type", {"default", "llama3"}, 0);
  reader.Finish();
  return scaling;
}

// RoPE in the older dialect (rope_theta and rope_scaling) or the newer (rope_parameters), which
// wins.
void ReadRope(JsonObjectReader* reader, FileDiagnostics* problems,
              std::vector<std::string>* differences, ModelConfig* c) {
  const JsonValue* parameters = reader->TakeUnlessNull("rope_parameters");
  c->rope_theta = reader->Number("rope_theta", kTheta, 10000);
  const JsonValue* scaling = reader->TakeUnlessNull("rope_scaling");
  if (scaling != nullptr)
    c->rope_scaling = ReadRopeScaling(*scaling, "rope_scaling.", nullptr, problems);
  if (parameters == nullptr) return;
  ModelConfig older = *c;
  c->rope_scaling = ReadRopeScaling(*parameters, "rope_parameters.", &c->rope_theta, problems);
  bool both = reader->Take("rope_theta") != nullptr || scaling != nullptr;
  if (both && !(older == *c)) {
    differences->push_back(
        absl::StrCat(parameters->line, ":", parameters->column,
                     ": rope_parameters differs from rope_theta and rope_scaling, and is used"));
  }
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

ModelConfig ReadLlama(JsonObjectReader* reader, FileDiagnostics* problems,
                      std::vector<std::string>* differences) {
  ModelConfig c;
  c.family = ModelFamily::kLlama;
  c.layers = reader->Integer("num_hidden_layers", kLayers);
  c.hidden = reader->Integer("hidden_size", kSize);
  c.heads = reader->Integer("num_attention_heads", kHeads);
  c.kv_heads = c.heads;
  if (reader->TakeUnlessNull("num_key_value_heads") != nullptr) {
    c.kv_heads = reader->Integer("num_key_value_heads", kHeads);
  }
  c.head_dim = reader->TakeUnlessNull("head_dim") != nullptr
                   ? reader->Integer("head_dim", kHeads)
                   : HeadDimFromHidden(reader, "hidden_size", "num_attention_heads", c);
  c.ffn = reader->Integer("intermediate_size", kSize);
  c.embedding_dropout = reader->Number("embd_pdrop", kProbability, 0);
  c.hidden_dropout = reader->Number("resid_pdrop", kProbability, 0);
  c.attention_dropout = reader->Number("attention_dropout", kProbability, 0);
  c.norm_epsilon = reader->Number("rms_norm_eps", kEpsilon, 1e-6);
  reader->Choice("hidden_act", {"silu", "swish"}, 0);
  reader->RequireBool("attention_bias", false);
  reader->RequireBool("mlp_bias", false);
  reader->RequireBool("rope_interleaved", false);
  reader->RequireNull("sliding_window", "attention over a window is not supported");
  ReadRope(reader, problems, differences, &c);
  ReadCommon(reader, "max_position_embeddings", /*tied_if_absent=*/false, &c);
  CheckHeads(c, reader);
  return c;
}

// ParameterCount in floating point, which does not overflow.
double ApproximateParameters(const ModelConfig& c) {
  double hidden = c.hidden;
  double attention = 2.0 * (c.heads + c.kv_heads) * c.head_dim;
  return hidden * (2.0 * c.vocab + c.max_positions + c.layers * (attention + 3.0 * c.ffn + 8));
}

void Note(absl::string_view file, const std::vector<const JsonMember*>& ignored,
          const std::vector<std::string>& differences, std::vector<std::string>* notes) {
  if (notes == nullptr) return;
  const auto append_key = [](std::string* out, const JsonMember* member) {
    out->append(EscapeBytes(member->key));
  };
  if (!ignored.empty()) {
    notes->push_back(absl::StrCat(EscapeBytes(file), ": ignored, they change nothing here: ",
                                  absl::StrJoin(ignored, ", ", append_key)));
  }
  for (const std::string& text : differences)
    notes->push_back(absl::StrCat(EscapeBytes(file), ":", text));
}

}  // namespace

absl::StatusOr<ModelConfig> ParseModelConfig(absl::string_view text, absl::string_view file,
                                             std::vector<std::string>* notes) {
  JsonValue root;
  MGC_ASSIGN_OR_RETURN(root, ParseJson(text, file));
  return ParseModelConfig(root, file, notes);
}

absl::StatusOr<ModelConfig> ParseModelConfig(const JsonValue& root, absl::string_view file,
                                             std::vector<std::string>* notes) {
  FileDiagnostics problems(file);
  JsonObjectReader reader(root, "", &problems);
  size_t family = reader.Choice("model_type", {"gpt2", "llama"});
  // The keys of an unknown family would only add noise.
  MGC_RETURN_IF_ERROR(problems.ToStatus());

  std::vector<std::string> differences;
  ModelConfig config =
      family == 0 ? ReadGpt2(&reader) : ReadLlama(&reader, &problems, &differences);
  std::vector<const JsonMember*> ignored;
  reader.Ignore(kHarmless, &ignored);
  reader.Ignore(
      family == 0 ? absl::MakeConstSpan(kHarmlessGpt2) : absl::MakeConstSpan(kHarmlessLlama),
      &ignored);
  reader.Finish();
  if (problems.empty() && ApproximateParameters(config) > kMaxParameters) {
    problems.Add(root.place(), "C3",
                 absl::StrCat("the model has some ", ApproximateParameters(config),
                              " parameters; at most 1e15 are supported"));
  }
  MGC_RETURN_IF_ERROR(problems.ToStatus());
  Note(file, ignored, differences, notes);
  return config;
}

}  // namespace mgc
