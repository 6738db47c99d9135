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

bool IsQwen(ModelFamily family) {
  return family == ModelFamily::kQwen2 || family == ModelFamily::kQwen3;
}

void WriteWindows(const ModelConfig& c, JsonWriter* json) {
  const bool by_layer = IsQwen(c.family) || c.family == ModelFamily::kGemma2;
  const bool always = c.family == ModelFamily::kMistral || c.family == ModelFamily::kPhi3;
  if (c.window == 0) {
    if (always || c.family == ModelFamily::kGemma2) Member("sliding_window", json).Null();
    return;
  }
  if (IsQwen(c.family)) Member("use_sliding_window", json).Bool(true);
  Member("sliding_window", json).Integer(c.window);
  if (!by_layer) return;
  Member("layer_types", json).BeginArray();
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    json->String(WindowOfLayer(c, layer) > 0 ? "sliding_attention" : "full_attention");
  }
  json->EndArray();
}

void WriteCap(absl::string_view key, double cap, JsonWriter* json) {
  Member(key, json);
  if (cap == 0) {
    json->Null();
  } else {
    json->Number(cap);
  }
}

void WriteGptNeoX(const ModelConfig& c, JsonWriter* json) {
  Member("hidden_act", json).String(c.tanh_gelu ? "gelu_new" : "gelu");
  WriteIntegers({{"num_hidden_layers", c.layers},
                 {"hidden_size", c.hidden},
                 {"num_attention_heads", c.heads},
                 {"intermediate_size", c.ffn},
                 {"max_position_embeddings", c.max_positions},
                 {"vocab_size", c.vocab}},
                json);
  Member("hidden_dropout", json).Number(c.hidden_dropout);
  Member("attention_dropout", json).Number(c.attention_dropout);
  Member("layer_norm_eps", json).Number(c.norm_epsilon);
  Member("use_parallel_residual", json).Bool(c.parallel_residual);
  Member("rotary_emb_base", json).Number(c.rope_theta);
  Member("rotary_pct", json).Number(c.rotary_share);
  if (c.rope_scaling.has_value()) WriteRopeScaling(*c.rope_scaling, json);
}

// What bert and vit share.
void WriteEncoder(const ModelConfig& c, JsonWriter* json) {
  Member("hidden_act", json).String(c.tanh_gelu ? "gelu_new" : "gelu");
  WriteIntegers({{"num_hidden_layers", c.layers},
                 {"hidden_size", c.hidden},
                 {"num_attention_heads", c.heads},
                 {"intermediate_size", c.ffn}},
                json);
  Member("hidden_dropout_prob", json).Number(c.hidden_dropout);
  Member("attention_probs_dropout_prob", json).Number(c.attention_dropout);
  Member("layer_norm_eps", json).Number(c.norm_epsilon);
}

void WriteBert(const ModelConfig& c, JsonWriter* json) {
  WriteEncoder(c, json);
  WriteIntegers({{"type_vocab_size", c.segments},
                 {"max_position_embeddings", c.max_positions},
                 {"vocab_size", c.vocab}},
                json);
}

void WriteVit(const ModelConfig& c, JsonWriter* json) {
  WriteEncoder(c, json);
  Member("image_size", json).BeginArray();
  json->Integer(c.image.height).Integer(c.image.width).EndArray();
  WriteIntegers(
      {{"patch_size", c.image.patch}, {"num_channels", c.image.channels}, {"num_labels", c.vocab}},
      json);
}

void WriteLlamaLike(const ModelConfig& c, JsonWriter* json) {
  const bool gated_gelu = ActivationOf(c) == MlpOptions::Activation::kGeglu;
  Member(c.family == ModelFamily::kGemma2 ? "hidden_activation" : "hidden_act", json)
      .String(gated_gelu ? "gelu_pytorch_tanh" : "silu");
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
  if (c.family == ModelFamily::kPhi3) Member("partial_rotary_factor", json).Number(c.rotary_share);
  if (c.rope_scaling.has_value()) WriteRopeScaling(*c.rope_scaling, json);
  WriteWindows(c, json);
  if (c.family != ModelFamily::kGemma2) return;
  Member("query_pre_attn_scalar", json).Number(c.query_scalar);
  WriteCap("attn_logit_softcapping", c.score_cap, json);
  WriteCap("final_logit_softcapping", c.logit_cap, json);
}

void WriteOwnKeys(const ModelConfig& c, JsonWriter* json) {
  switch (c.family) {
    case ModelFamily::kGpt2:
      return WriteGpt2(c, json);
    case ModelFamily::kGptNeoX:
      return WriteGptNeoX(c, json);
    case ModelFamily::kBert:
      return WriteBert(c, json);
    case ModelFamily::kVit:
      return WriteVit(c, json);
    default:
      return WriteLlamaLike(c, json);
  }
}

}  // namespace

std::string ModelConfigToJson(const ModelConfig& config) {
  const FamilyTraits& traits = TraitsOf(config.family);
  JsonWriter json;
  json.BeginObject();
  Member("architectures", &json).BeginArray().String(traits.architecture).EndArray();
  Member("model_type", &json).String(traits.model_type);
  WriteOwnKeys(config, &json);
  Member("initializer_range", &json).Number(config.initializer_range);
  if (!traits.images) {
    Member("tie_word_embeddings", &json).Bool(config.tie_embeddings);
    Member("seq_length", &json).Integer(config.seq_length);
  }
  return std::move(json.NewLine().EndObject()).Finish();
}

}  // namespace mgc
