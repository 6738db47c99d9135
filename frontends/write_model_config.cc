// ModelConfigToJson: the older of Hugging Face's dialects.
#include <initializer_list>
#include <utility>

#include "frontends/families.h"
#include "frontends/model_config.h"
#include "graph/base/json_writer.h"

namespace mgc {
namespace {

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

void WriteRopeScaling(const Llama3RopeScaling& s, JsonWriter* json) {
  Member("rope_scaling", json).BeginObject().String("rope_type", "llama3");
  json->Number("factor", s.factor).Number("low_freq_factor", s.low_freq_factor);
  json->Number("high_freq_factor", s.high_freq_factor);
  json->Integer("original_max_position_embeddings", s.original_max_positions).EndObject();
}

void WriteLlamaLike(const ModelConfig& c, JsonWriter* json) {
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
  if (c.rope_scaling.has_value()) WriteRopeScaling(*c.rope_scaling, json);
}

}  // namespace

std::string ModelConfigToJson(const ModelConfig& config) {
  const FamilyTraits& traits = TraitsOf(config.family);
  JsonWriter json;
  json.BeginObject();
  Member("architectures", &json).BeginArray().String(traits.architecture).EndArray();
  Member("model_type", &json).String(traits.model_type);
  if (config.family == ModelFamily::kGpt2) {
    WriteGpt2(config, &json);
  } else {
    WriteLlamaLike(config, &json);
  }
  Member("initializer_range", &json).Number(config.initializer_range);
  Member("tie_word_embeddings", &json).Bool(config.tie_embeddings);
  Member("seq_length", &json).Integer(config.seq_length);
  return std::move(json.NewLine().EndObject()).Finish();
}

}  // namespace mgc
