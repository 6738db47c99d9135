// Files as the hubs of models have them.

#include <string>
#include <vector>

#include "frontends/model_config.h"
#include "frontends/testing/config_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

// What the hubs' files hold beside sizes: gpt2-medium, -large and -xl, SmolLM, SmolLM2, Qwen2.5,
// Qwen3, Phi-3, Pythia and Gemma 2.
TEST(PublishedConfigs, OfDecodersAreRead) {
  constexpr char kGpt2Xl[] = R"({
    "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
    "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02,
    "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 1600,
    "n_head": 25, "n_layer": 48, "n_positions": 1024, "n_special": 0, "output_past": true,
    "predict_special_tokens": true, "resid_pdrop": 0.1, "summary_activation": null,
    "summary_first_dropout": 0.1, "summary_proj_to_labels": true, "summary_type": "cls_index",
    "summary_use_proj": true,
    "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}},
    "vocab_size": 50257})";
  constexpr char kSmolLm2[] = R"({
    "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 0, "eos_token_id": 0, "hidden_act": "silu", "hidden_size": 576,
    "initializer_range": 0.041666666666666664, "intermediate_size": 1536,
    "is_llama_config": true, "max_position_embeddings": 8192, "model_type": "llama",
    "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3,
    "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_interleaved": false, "rope_scaling": null,
    "rope_theta": 100000, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
    "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16", "fp16": "float16"}},
    "transformers_version": "4.40.1", "use_cache": true, "vocab_size": 49152})";
  constexpr char kQwen25[] = R"({
    "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
    "eos_token_id": 151643, "hidden_act": "silu", "hidden_size": 896, "initializer_range": 0.02,
    "intermediate_size": 4864, "max_position_embeddings": 32768, "max_window_layers": 24,
    "model_type": "qwen2", "num_attention_heads": 14, "num_hidden_layers": 24,
    "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
    "sliding_window": 32768, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
    "transformers_version": "4.40.1", "use_cache": true, "use_mrope": false,
    "use_sliding_window": false, "vocab_size": 151936})";
  constexpr char kQwen3[] = R"({
    "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu",
    "hidden_size": 1024, "initializer_range": 0.02, "intermediate_size": 3072,
    "max_position_embeddings": 40960, "max_window_layers": 28, "model_type": "qwen3",
    "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
    "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.51.0",
    "use_cache": true, "use_sliding_window": false, "vocab_size": 151936})";
  constexpr char kPhi3[] = R"({
    "architectures": ["Phi3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config"}, "bos_token_id": 1,
    "embd_pdrop": 0.0, "eos_token_id": 32000, "hidden_act": "silu", "hidden_size": 3072,
    "initializer_range": 0.02, "intermediate_size": 8192, "max_position_embeddings": 4096,
    "model_type": "phi3", "num_attention_heads": 32, "num_hidden_layers": 32,
    "num_key_value_heads": 32, "original_max_position_embeddings": 4096, "pad_token_id": 32000,
    "resid_pdrop": 0.0, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0,
    "sliding_window": 2047, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
    "transformers_version": "4.40.2", "use_cache": true, "vocab_size": 32064})";
  constexpr char kPythia[] = R"({
    "architectures": ["GPTNeoXForCausalLM"], "bos_token_id": 0, "eos_token_id": 0,
    "hidden_act": "gelu", "hidden_size": 512, "initializer_range": 0.02,
    "intermediate_size": 2048, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048,
    "model_type": "gpt_neox", "num_attention_heads": 8, "num_hidden_layers": 6,
    "rotary_emb_base": 10000, "rotary_pct": 0.25, "tie_word_embeddings": false,
    "torch_dtype": "float16", "transformers_version": "4.24.0", "use_cache": true,
    "use_parallel_residual": true, "vocab_size": 50304})";
  constexpr char kGemma2[] = R"({
    "architectures": ["Gemma2ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "attn_logit_softcapping": 50.0, "bos_token_id": 2, "cache_implementation": "hybrid",
    "eos_token_id": 1, "final_logit_softcapping": 30.0, "head_dim": 256,
    "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 2304, "initializer_range": 0.02, "intermediate_size": 9216,
    "max_position_embeddings": 8192, "model_type": "gemma2", "num_attention_heads": 8,
    "num_hidden_layers": 26, "num_key_value_heads": 4, "pad_token_id": 0,
    "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "rope_theta": 10000.0,
    "sliding_window": 4096, "torch_dtype": "float32", "transformers_version": "4.42.4",
    "use_cache": true, "vocab_size": 256000})";
  for (const char* text : {kGpt2Xl, kSmolLm2, kQwen25, kQwen3, kPhi3, kPythia, kGemma2}) {
    std::vector<std::string> notes;
    const auto config = ParseModelConfig(text, "f", &notes);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(notes.size(), 1) << "one note for all that is ignored";
  }
  // What would change the mathematics is not among it.
  EXPECT_THAT(ErrorOf(Edit(kGpt2Xl, "\"n_special\": 0", "\"n_special\": 2")),
              HasSubstr("n_special"));
  EXPECT_THAT(ErrorOf(Edit(kSmolLm2, "\"rope_interleaved\": false", "\"rope_interleaved\": true")),
              HasSubstr("rope_interleaved"));
}

// bert-base-uncased and vit-base-patch16-224, with fewer labels.
TEST(PublishedConfigs, OfEncodersAreRead) {
  constexpr char kBert[] = R"({
    "architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.1,
    "gradient_checkpointing": false, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
    "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072,
    "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "bert",
    "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 0,
    "position_embedding_type": "absolute", "transformers_version": "4.6.0.dev0",
    "type_vocab_size": 2, "use_cache": true, "vocab_size": 30522})";
  constexpr char kVit[] = R"({
    "architectures": ["ViTForImageClassification"], "attention_probs_dropout_prob": 0.0,
    "encoder_stride": 16, "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "hidden_size": 768,
    "id2label": {"0": "tench", "1": "goldfish", "2": "great white shark"}, "image_size": 224,
    "initializer_range": 0.02, "intermediate_size": 3072, "label2id": {"tench": "0"},
    "layer_norm_eps": 1e-12, "model_type": "vit", "num_attention_heads": 12, "num_channels": 3,
    "num_hidden_layers": 12, "patch_size": 16, "qkv_bias": true,
    "transformers_version": "4.13.0.dev0"})";
  for (const char* text : {kBert, kVit}) {
    std::vector<std::string> notes;
    const auto config = ParseModelConfig(text, "f", &notes);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(notes.size(), 1) << "one note for all that is ignored";
  }
  const ModelConfig vit = ParseModelConfig(kVit, "f").value();
  EXPECT_EQ(vit.vocab, 3) << "as many labels as have names";
  EXPECT_EQ(vit.seq_length, 14 * 14 + 1);
  EXPECT_EQ(PatchSize(vit.image), 3 * 16 * 16);
  EXPECT_EQ(ParameterCount(ParseModelConfig(kBert, "f").value()), 109514298) << "as published";
  EXPECT_THAT(ErrorOf(Edit(kBert, "\"absolute\"", "\"relative_key\"")),
              HasSubstr("position_embedding_type must be absolute"));
  EXPECT_THAT(ErrorOf(Edit(kBert, "\"use_cache\": true", "\"is_decoder\": true")),
              HasSubstr("is_decoder must be false"));
  EXPECT_THAT(ErrorOf(Edit(kVit, "\"qkv_bias\": true", "\"qkv_bias\": false")),
              HasSubstr("qkv_bias must be true"));
}

}  // namespace
}  // namespace mgc
