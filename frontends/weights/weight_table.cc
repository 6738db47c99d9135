#include "frontends/weights/weight_table.h"

#include <cstddef>

namespace mgc {
namespace {

using Layout = WeightLayout;

constexpr WeightRow Linear(const char* name, const char* parameter, int inputs = 1) {
  return {name, {parameter}, inputs, Layout::kLinear};
}

constexpr WeightRow Norm(const char* name, const char* parameter) {
  return {name, {parameter}, 0, Layout::kStored, 0, false, true};
}

constexpr WeightRow Table(const char* name, const char* parameter) {
  return {name, {parameter}, 1, Layout::kStored, 0, false, false, true};
}

// A tensor of its own name, with dims of size 1 before its own.
constexpr WeightRow Exact(const char* name, const char* parameter, int ones, int inputs) {
  return {name, {parameter}, inputs, Layout::kStored, ones, true};
}

constexpr WeightRow kGpt2[] = {
    Table("transformer.wte", "embedding.word"),
    Table("transformer.wpe", "embedding.position"),
    Norm("transformer.h.*.ln_1", "norm1"),
    {"transformer.h.*.attn.c_attn", {"attention.q", "attention.k", "attention.v"}, 1},
    {"transformer.h.*.attn.c_proj", {"attention.out"}, 2},
    Norm("transformer.h.*.ln_2", "norm2"),
    {"transformer.h.*.mlp.c_fc", {"mlp.up"}, 1},
    {"transformer.h.*.mlp.c_proj", {"mlp.down"}, 1},
    Norm("transformer.ln_f", "head.norm"),
    Table("lm_head", "head"),
};

constexpr WeightRow kLlama[] = {
    Table("model.embed_tokens", "embedding.word"),
    Norm("model.layers.*.input_layernorm", "norm1"),
    Linear("model.layers.*.self_attn.q_proj", "attention.q"),
    Linear("model.layers.*.self_attn.k_proj", "attention.k"),
    Linear("model.layers.*.self_attn.v_proj", "attention.v"),
    Norm("model.layers.*.self_attn.q_norm", "attention.q_norm"),
    Norm("model.layers.*.self_attn.k_norm", "attention.k_norm"),
    Linear("model.layers.*.self_attn.o_proj", "attention.out", 2),
    Norm("model.layers.*.post_attention_layernorm", "norm2"),
    Linear("model.layers.*.mlp.gate_proj", "mlp.gate"),
    Linear("model.layers.*.mlp.up_proj", "mlp.up"),
    Linear("model.layers.*.mlp.down_proj", "mlp.down"),
    Norm("model.norm", "head.norm"),
    Table("lm_head", "head"),
};

constexpr WeightRow kPhi3[] = {
    Table("model.embed_tokens", "embedding.word"),
    Norm("model.layers.*.input_layernorm", "norm1"),
    {"model.layers.*.self_attn.qkv_proj",
     {"attention.q", "attention.k", "attention.v"},
     1,
     Layout::kLinear},
    Linear("model.layers.*.self_attn.o_proj", "attention.out", 2),
    Norm("model.layers.*.post_attention_layernorm", "norm2"),
    {"model.layers.*.mlp.gate_up_proj", {"mlp.gate", "mlp.up"}, 1, Layout::kLinear},
    Linear("model.layers.*.mlp.down_proj", "mlp.down"),
    Norm("model.norm", "head.norm"),
    Table("lm_head", "head"),
};

constexpr WeightRow kGemma2[] = {
    Table("model.embed_tokens", "embedding.word"),
    Norm("model.layers.*.input_layernorm", "norm1"),
    Linear("model.layers.*.self_attn.q_proj", "attention.q"),
    Linear("model.layers.*.self_attn.k_proj", "attention.k"),
    Linear("model.layers.*.self_attn.v_proj", "attention.v"),
    Linear("model.layers.*.self_attn.o_proj", "attention.out", 2),
    Norm("model.layers.*.post_attention_layernorm", "attention.norm"),
    Norm("model.layers.*.pre_feedforward_layernorm", "norm2"),
    Linear("model.layers.*.mlp.gate_proj", "mlp.gate"),
    Linear("model.layers.*.mlp.up_proj", "mlp.up"),
    Linear("model.layers.*.mlp.down_proj", "mlp.down"),
    Norm("model.layers.*.post_feedforward_layernorm", "mlp.norm"),
    Norm("model.norm", "head.norm"),
    Table("lm_head", "head"),
};

constexpr WeightRow kGptNeoX[] = {
    Table("gpt_neox.embed_in", "embedding.word"),
    Norm("gpt_neox.layers.*.input_layernorm", "norm1"),
    {"gpt_neox.layers.*.attention.query_key_value",
     {"attention.q", "attention.k", "attention.v"},
     1,
     Layout::kByHead},
    Linear("gpt_neox.layers.*.attention.dense", "attention.out", 2),
    Norm("gpt_neox.layers.*.post_attention_layernorm", "norm2"),
    Linear("gpt_neox.layers.*.mlp.dense_h_to_4h", "mlp.up"),
    Linear("gpt_neox.layers.*.mlp.dense_4h_to_h", "mlp.down"),
    Norm("gpt_neox.final_layer_norm", "head.norm"),
    Table("embed_out", "head"),
};

constexpr WeightRow kBert[] = {
    Table("bert.embeddings.word_embeddings", "embedding.word"),
    Table("bert.embeddings.position_embeddings", "embedding.position"),
    Table("bert.embeddings.token_type_embeddings", "embedding.segment"),
    Norm("bert.embeddings.LayerNorm", "embedding.norm"),
    Linear("bert.encoder.layer.*.attention.self.query", "attention.q"),
    Linear("bert.encoder.layer.*.attention.self.key", "attention.k"),
    Linear("bert.encoder.layer.*.attention.self.value", "attention.v"),
    Linear("bert.encoder.layer.*.attention.output.dense", "attention.out", 2),
    Norm("bert.encoder.layer.*.attention.output.LayerNorm", "norm1"),
    Linear("bert.encoder.layer.*.intermediate.dense", "mlp.up"),
    Linear("bert.encoder.layer.*.output.dense", "mlp.down"),
    Norm("bert.encoder.layer.*.output.LayerNorm", "norm2"),
    Linear("cls.predictions.transform.dense", "head.transform"),
    Norm("cls.predictions.transform.LayerNorm", "head.norm"),
    Exact("cls.predictions.bias", "head.bias", 0, 0),
    Exact("cls.predictions.decoder.weight", "head", 0, 1),
};

constexpr WeightRow kVit[] = {
    Exact("vit.embeddings.cls_token", "embedding.class", 2, 0),
    Exact("vit.embeddings.position_embeddings", "embedding.position", 1, 1),
    {"vit.embeddings.patch_embeddings.projection", {"embedding.patch"}, 1, Layout::kPatches},
    Norm("vit.encoder.layer.*.layernorm_before", "norm1"),
    Linear("vit.encoder.layer.*.attention.attention.query", "attention.q"),
    Linear("vit.encoder.layer.*.attention.attention.key", "attention.k"),
    Linear("vit.encoder.layer.*.attention.attention.value", "attention.v"),
    Linear("vit.encoder.layer.*.attention.output.dense", "attention.out", 2),
    Norm("vit.encoder.layer.*.layernorm_after", "norm2"),
    Linear("vit.encoder.layer.*.intermediate.dense", "mlp.up"),
    Linear("vit.encoder.layer.*.output.dense", "mlp.down"),
    Norm("vit.layernorm", "head.norm"),
    Table("classifier", "head"),
};

constexpr WeightRule kGpt2Ignored[] = {
    {".attn.bias", "the causal mask"},
    {".attn.masked_bias", "a constant of the causal mask"},
};

constexpr char kFrequencies[] = "the frequencies of RoPE, which the configuration gives";

constexpr WeightRule kRopeIgnored[] = {{".rotary_emb.inv_freq", kFrequencies}};

constexpr WeightRule kGptNeoXIgnored[] = {
    {".attention.bias", "the causal mask"},
    {".attention.masked_bias", "a constant of the causal mask"},
    {".rotary_emb.inv_freq", kFrequencies},
};

// decoder.bias is that of the predictions, under another name.
constexpr WeightRule kBertIgnored[] = {
    {"embeddings.position_ids", "the numbers 0, 1, 2, ..."},
    {"pooler.dense.weight", "the pooler, which finding masked words does not use"},
    {"pooler.dense.bias", "the pooler, which finding masked words does not use"},
    {"cls.seq_relationship.weight", "the head that says whether sentences follow each other"},
    {"cls.seq_relationship.bias", "the head that says whether sentences follow each other"},
    {"cls.predictions.decoder.bias", "tied to cls.predictions.bias"},
};

constexpr WeightRule kVitIgnored[] = {
    {"pooler.dense.weight", "the pooler, which a classifier does not use"},
    {"pooler.dense.bias", "the pooler, which a classifier does not use"},
};

constexpr FamilyWeights Kin(absl::Span<const WeightRow> rows, bool norms_add_one = false) {
  return {rows, "model.", norms_add_one, kRopeIgnored};
}

}  // namespace

bool IsLinear(const WeightRow& row) {
  const bool is_weight = row.inputs > 0 && !row.exact && !row.is_table;
  return is_weight && row.layout != Layout::kPatches;
}

const FamilyWeights& WeightsOf(ModelFamily family) {
  static constexpr FamilyWeights kGpt2Files = {kGpt2, "transformer.", false, kGpt2Ignored};
  static constexpr FamilyWeights kLlamaFiles = Kin(kLlama);
  static constexpr FamilyWeights kPhi3Files = Kin(kPhi3);
  static constexpr FamilyWeights kGemmaFiles = Kin(kLlama, true);
  static constexpr FamilyWeights kGemma2Files = Kin(kGemma2, true);
  static constexpr FamilyWeights kGptNeoXFiles = {kGptNeoX, "gpt_neox.", false, kGptNeoXIgnored,
                                                  "embed_out.weight"};
  static constexpr FamilyWeights kBertFiles = {
      kBert, "bert.", false, kBertIgnored, "cls.predictions.decoder.weight", true};
  static constexpr FamilyWeights kVitFiles = {kVit, "vit.", false, kVitIgnored, ""};
  switch (family) {
    case ModelFamily::kGpt2:
      return kGpt2Files;
    case ModelFamily::kPhi3:
      return kPhi3Files;
    case ModelFamily::kGptNeoX:
      return kGptNeoXFiles;
    case ModelFamily::kGemma:
      return kGemmaFiles;
    case ModelFamily::kGemma2:
      return kGemma2Files;
    case ModelFamily::kBert:
      return kBertFiles;
    case ModelFamily::kVit:
      return kVitFiles;
    case ModelFamily::kLlama:
    case ModelFamily::kQwen2:
    case ModelFamily::kQwen3:
    case ModelFamily::kMistral:
      return kLlamaFiles;
  }
  return kLlamaFiles;
}

}  // namespace mgc
