#include "frontends/model_config.h"

#include <initializer_list>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/base/json_writer.h"
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

// A member of the object on a line of its own.
JsonWriter& Member(absl::string_view key, JsonWriter* json) { return json->NewLine(2).Key(key); }

struct IntegerField {
  absl::string_view key;
  int64_t value;
};

void WriteIntegers(std::initializer_list<IntegerField> fields, JsonWriter* json) {
  for (const IntegerField& field : fields) Member(field.key, json).Integer(field.value);
}

void WriteGpt2(const ModelConfig& c, JsonWriter* json) {
  Member("architectures", json).BeginArray().String("GPT2LMHeadModel").EndArray();
  Member("model_type", json).String("gpt2");
  Member("activation_function", json).String("gelu_new");
  WriteIntegers({{"n_layer", c.layers},
                 {"n_embd", c.hidden},
                 {"n_head", c.heads},
                 {"n_inner", c.ffn},
                 {"n_positions", c.max_positions},
                 {"vocab_size", c.vocab}},
                json);
  Member("embd_pdrop", json).Number(c.embedding_dropout);
  Member("resid_pdrop", json).Number(c.hidden_dropout);
  Member("attn_pdrop", json).Number(c.attention_dropout);
  Member("layer_norm_epsilon", json).Number(c.norm_epsilon);
}

void WriteLlama(const ModelConfig& c, JsonWriter* json) {
  Member("architectures", json).BeginArray().String("LlamaForCausalLM").EndArray();
  Member("model_type", json).String("llama");
  Member("hidden_act", json).String("silu");
  WriteIntegers({{"num_hidden_layers", c.layers},
                 {"hidden_size", c.hidden},
                 {"num_attention_heads", c.heads},
                 {"num_key_value_heads", c.kv_heads},
                 {"head_dim", c.head_dim},
                 {"intermediate_size", c.ffn},
                 {"max_position_embeddings", c.max_positions},
                 {"vocab_size", c.vocab}},
                json);
  Member("embd_pdrop", json).Number(c.embedding_dropout);
  Member("resid_pdrop", json).Number(c.hidden_dropout);
  Member("attention_dropout", json).Number(c.attention_dropout);
  Member("rms_norm_eps", json).Number(c.norm_epsilon);
  Member("rope_theta", json).Number(c.rope_theta);
  if (!c.rope_scaling.has_value()) return;
  const Llama3RopeScaling& s = *c.rope_scaling;
  Member("rope_scaling", json).BeginObject().String("rope_type", "llama3");
  json->Number("factor", s.factor).Number("low_freq_factor", s.low_freq_factor);
  json->Number("high_freq_factor", s.high_freq_factor);
  json->Integer("original_max_position_embeddings", s.original_max_positions).EndObject();
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

ModelDims DimsOf(const ModelConfig& config) {
  ModelDims dims;
  dims.layers = config.layers;
  dims.hidden = config.hidden;
  dims.heads = config.heads;
  dims.kv_heads = config.kv_heads;
  dims.head_dim = config.head_dim;
  dims.ffn = config.ffn;
  dims.vocab = config.vocab;
  dims.max_positions = config.max_positions;
  return dims;
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
  JsonWriter json;
  json.BeginObject();
  if (config.family == ModelFamily::kGpt2) {
    WriteGpt2(config, &json);
  } else {
    WriteLlama(config, &json);
  }
  Member("initializer_range", &json).Number(config.initializer_range);
  Member("tie_word_embeddings", &json).Bool(config.tie_embeddings);
  Member("seq_length", &json).Integer(config.seq_length);
  return std::move(json.NewLine().EndObject()).Finish();
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
