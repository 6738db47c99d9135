#include "frontends/model_config.h"

#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/suggest.h"

namespace mgc {
namespace {

auto Fields(const Llama3RopeScaling& s) {
  return std::tie(s.factor, s.low_freq_factor, s.high_freq_factor, s.original_max_positions);
}

auto Fields(const ModelConfig& c) {
  return std::tie(c.family, c.layers, c.hidden, c.heads, c.kv_heads, c.head_dim, c.ffn, c.vocab,
                  c.max_positions, c.seq_length, c.embedding_dropout, c.hidden_dropout,
                  c.attention_dropout, c.norm_epsilon, c.tie_embeddings, c.initializer_range,
                  c.rope_theta);
}

// Collects the lines of an object.
class ObjectWriter {
 public:
  void Integer(absl::string_view key, int64_t value) { Raw(key, absl::StrCat(value)); }
  void Number(absl::string_view key, double value) { Raw(key, JsonNumber(value)); }
  void Bool(absl::string_view key, bool value) { Raw(key, value ? "true" : "false"); }
  void Raw(absl::string_view key, absl::string_view json) {
    lines_.push_back(absl::StrCat("  ", JsonQuote(key), ": ", json));
  }
  std::string Finish() const { return absl::StrCat("{\n", absl::StrJoin(lines_, ",\n"), "\n}\n"); }

 private:
  std::vector<std::string> lines_;
};

void WriteGpt2(const ModelConfig& c, ObjectWriter* out) {
  out->Raw("architectures", "[\"GPT2LMHeadModel\"]");
  out->Raw("model_type", "\"gpt2\"");
  out->Raw("activation_function", "\"gelu_new\"");
  out->Integer("n_layer", c.layers);
  out->Integer("n_embd", c.hidden);
  out->Integer("n_head", c.heads);
  out->Integer("n_inner", c.ffn);
  out->Integer("n_positions", c.max_positions);
  out->Integer("vocab_size", c.vocab);
  out->Number("embd_pdrop", c.embedding_dropout);
  out->Number("resid_pdrop", c.hidden_dropout);
  out->Number("attn_pdrop", c.attention_dropout);
  out->Number("layer_norm_epsilon", c.norm_epsilon);
}

void WriteLlama(const ModelConfig& c, ObjectWriter* out) {
  out->Raw("architectures", "[\"LlamaForCausalLM\"]");
  out->Raw("model_type", "\"llama\"");
  out->Raw("hidden_act", "\"silu\"");
  out->Integer("num_hidden_layers", c.layers);
  out->Integer("hidden_size", c.hidden);
  out->Integer("num_attention_heads", c.heads);
  out->Integer("num_key_value_heads", c.kv_heads);
  out->Integer("head_dim", c.head_dim);
  out->Integer("intermediate_size", c.ffn);
  out->Integer("max_position_embeddings", c.max_positions);
  out->Integer("vocab_size", c.vocab);
  out->Number("embd_pdrop", c.embedding_dropout);
  out->Number("resid_pdrop", c.hidden_dropout);
  out->Number("attention_dropout", c.attention_dropout);
  out->Number("rms_norm_eps", c.norm_epsilon);
  out->Number("rope_theta", c.rope_theta);
  if (!c.rope_scaling.has_value()) return;
  const Llama3RopeScaling& s = *c.rope_scaling;
  out->Raw("rope_scaling",
           absl::StrCat("{\"rope_type\": \"llama3\", \"factor\": ", JsonNumber(s.factor),
                        ", \"low_freq_factor\": ", JsonNumber(s.low_freq_factor),
                        ", \"high_freq_factor\": ", JsonNumber(s.high_freq_factor),
                        ", \"original_max_position_embeddings\": ", s.original_max_positions, "}"));
}

const ModelPreset* FindPreset(absl::string_view name) {
  for (const ModelPreset& preset : ModelPresets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

std::vector<absl::string_view> PresetNames() {
  std::vector<absl::string_view> names;
  for (const ModelPreset& preset : ModelPresets()) names.push_back(preset.name);
  return names;
}

}  // namespace

bool operator==(const ModelConfig& a, const ModelConfig& b) {
  if (Fields(a) != Fields(b) || a.rope_scaling.has_value() != b.rope_scaling.has_value())
    return false;
  return !a.rope_scaling.has_value() || Fields(*a.rope_scaling) == Fields(*b.rope_scaling);
}

int64_t ParameterCount(const ModelConfig& c) {
  bool gpt2 = c.family == ModelFamily::kGpt2;
  int64_t queries = c.heads * c.head_dim;
  int64_t keys_values = 2 * c.kv_heads * c.head_dim;
  int64_t layer =
      c.hidden * (2 * queries + keys_values) + c.hidden * c.ffn * (gpt2 ? 2 : 3) + 2 * c.hidden;
  int64_t total = c.vocab * c.hidden * (c.tie_embeddings ? 1 : 2) + c.hidden;
  if (gpt2) {
    layer += queries + keys_values + c.hidden + c.ffn + c.hidden + 2 * c.hidden;
    total += c.max_positions * c.hidden + c.hidden;
  }
  return total + c.layers * layer;
}

std::string ModelConfigToJson(const ModelConfig& config) {
  ObjectWriter out;
  if (config.family == ModelFamily::kGpt2) {
    WriteGpt2(config, &out);
  } else {
    WriteLlama(config, &out);
  }
  out.Number("initializer_range", config.initializer_range);
  out.Bool("tie_word_embeddings", config.tie_embeddings);
  out.Integer("seq_length", config.seq_length);
  return out.Finish();
}

absl::StatusOr<ModelConfig> LoadModelPreset(absl::string_view name) {
  const ModelPreset* preset = FindPreset(name);
  if (preset != nullptr) return ParseModelConfig(preset->json, absl::StrCat(name, ".json"));
  std::vector<absl::string_view> names = PresetNames();
  return absl::NotFoundError(absl::StrCat("no preset is named ", EscapeBytes(name),
                                          DidYouMean(name, names), "; there are ",
                                          absl::StrJoin(names, ", ")));
}

absl::StatusOr<ModelConfig> LoadModelConfig(const std::string& preset_or_path,
                                            std::vector<std::string>* notes) {
  if (FindPreset(preset_or_path) != nullptr) return LoadModelPreset(preset_or_path);
  absl::StatusOr<std::string> text = ReadFile(preset_or_path, int64_t{1} << 24);
  if (absl::IsNotFound(text.status()) && preset_or_path.find('/') == std::string::npos) {
    return absl::NotFoundError(absl::StrCat(text.status().message(), "; and ",
                                            LoadModelPreset(preset_or_path).status().message()));
  }
  if (!text.ok()) return text.status();
  return ParseModelConfig(*text, preset_or_path, notes);
}

}  // namespace mgc
