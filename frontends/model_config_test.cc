#include "frontends/model_config.h"

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::string_view kGpt2 = R"({
  "model_type": "gpt2",
  "n_layer": 2, "n_embd": 12,
  "n_head": 3,
  "n_positions": 16, "vocab_size": 7
})";

constexpr absl::string_view kLlama = R"({
  "model_type": "llama",
  "num_hidden_layers": 2, "hidden_size": 24,
  "num_attention_heads": 4, "num_key_value_heads": 2,
  "intermediate_size": 20,
  "max_position_embeddings": 16, "vocab_size": 7
})";

std::string Edit(absl::string_view text, absl::string_view from, absl::string_view to) {
  EXPECT_THAT(std::string(text), HasSubstr(std::string(from)));
  return absl::StrReplaceAll(text, {{from, to}});
}

std::string ErrorOf(absl::string_view text) {
  return std::string(ParseModelConfig(text, "config.json").status().message());
}

TEST(ParseModelConfig, Gpt2KeysAndDefaults) {
  ModelConfig c = ParseModelConfig(kGpt2, "f").value();
  EXPECT_EQ(c.family, ModelFamily::kGpt2);
  EXPECT_EQ(c.layers, 2);
  EXPECT_EQ(c.kv_heads, 3);
  EXPECT_EQ(c.head_dim, 4);
  EXPECT_EQ(c.ffn, 48);
  EXPECT_EQ(c.seq_length, 16);
  EXPECT_EQ(c.embedding_dropout, 0.1);
  EXPECT_TRUE(c.tie_embeddings);
  EXPECT_EQ(c.norm_epsilon, 1e-5);
  std::string more = Edit(kGpt2, "\"n_head\": 3",
                          "\"n_head\": 3, \"n_inner\": null, \"seq_length\": 8, "
                          "\"attn_pdrop\": 0, \"tie_word_embeddings\": false");
  c = ParseModelConfig(more, "f").value();
  EXPECT_EQ(c.ffn, 48);
  EXPECT_EQ(c.seq_length, 8);
  EXPECT_EQ(c.attention_dropout, 0);
  EXPECT_FALSE(c.tie_embeddings);
}

TEST(ParseModelConfig, LlamaKeysAndDefaults) {
  ModelConfig c = ParseModelConfig(kLlama, "f").value();
  EXPECT_EQ(c.family, ModelFamily::kLlama);
  EXPECT_EQ(c.kv_heads, 2);
  EXPECT_EQ(c.head_dim, 6);
  EXPECT_EQ(c.ffn, 20);
  EXPECT_EQ(c.hidden_dropout, 0);
  EXPECT_EQ(c.norm_epsilon, 1e-6);
  EXPECT_EQ(c.rope_theta, 10000);
  EXPECT_FALSE(c.rope_scaling.has_value());
  EXPECT_FALSE(c.tie_embeddings);
  c = ParseModelConfig(Edit(kLlama, "\"num_key_value_heads\": 2",
                            "\"num_key_value_heads\": null, \"head_dim\": 10"),
                       "f")
          .value();
  EXPECT_EQ(c.kv_heads, 4);
  EXPECT_EQ(c.head_dim, 10);
}

TEST(ParseModelConfig, BothRopeDialects) {
  const std::string scaling =
      "\"rope_type\": \"llama3\", \"factor\": 8.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": "
      "4.0, "
      "\"original_max_position_embeddings\": 8192";
  std::string v4 =
      Edit(kLlama, "\"vocab_size\": 7",
           "\"vocab_size\": 7, \"rope_theta\": 5e5, \"rope_scaling\": {" + scaling + "}");
  std::string v5 =
      Edit(kLlama, "\"vocab_size\": 7",
           "\"vocab_size\": 7, \"rope_parameters\": {\"rope_theta\": 500000, " + scaling + "}");
  ModelConfig c = ParseModelConfig(v4, "f").value();
  EXPECT_EQ(c.rope_theta, 500000);
  ASSERT_TRUE(c.rope_scaling.has_value());
  EXPECT_EQ(c.rope_scaling->original_max_positions, 8192);
  EXPECT_TRUE(c == ParseModelConfig(v5, "f").value());
  std::string old_spelling = Edit(v4, "rope_type", "type");
  EXPECT_TRUE(c == ParseModelConfig(old_spelling, "f").value());
  EXPECT_EQ(
      ErrorOf(Edit(v4, "llama3", "yarn")),
      "config.json:6:100: rope_scaling.rope_type must be default or llama3, not \"yarn\" [J5]");
  EXPECT_THAT(ErrorOf(Edit(v4, "\"low_freq_factor\": 1", "\"low_freq_factor\": 4")),
              HasSubstr("[C4]"));
  EXPECT_THAT(ErrorOf(Edit(v5, "\"factor\": 8.0, ", "")),
              HasSubstr("rope_parameters.factor is missing [J4]"));

  std::vector<std::string> notes;
  std::string both = Edit(v5, "\"vocab_size\": 7", "\"vocab_size\": 7, \"rope_theta\": 10000");
  EXPECT_EQ(ParseModelConfig(both, "f", &notes)->rope_theta, 500000);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0],
              HasSubstr("rope_parameters differs from rope_theta and rope_scaling, and is used"));
}

TEST(ParseModelConfig, HarmlessKeysAreNoted) {
  std::vector<std::string> notes;
  std::string text =
      Edit(kGpt2, "\"n_head\": 3", "\"n_head\": 3,\n  \"use_cache\": true, \"n_ctx\": 16");
  EXPECT_TRUE(ParseModelConfig(text, "f", &notes).ok());
  EXPECT_THAT(notes, ElementsAre("f: ignored, they change nothing here: use_cache, n_ctx"));
  EXPECT_THAT(ErrorOf(Edit(kLlama, "\"vocab_size\": 7", "\"vocab_size\": 7, \"n_ctx\": 16")),
              HasSubstr("unknown key n_ctx"));
}

constexpr absl::string_view kQwen = R"({
  "model_type": "qwen2", "num_hidden_layers": 2, "hidden_size": 24,
  "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 20,
  "max_position_embeddings": 16, "vocab_size": 7,
  "layer_types": ["full_attention", "full_attention"]
})";

TEST(ParseModelConfig, QwenKeysAndDefaults) {
  EXPECT_EQ(ParseModelConfig(kQwen, "f")->family, ModelFamily::kQwen2);
  EXPECT_EQ(ParseModelConfig(kQwen, "f")->head_dim, 6);
  const ModelConfig qwen3 = ParseModelConfig(Edit(kQwen, "qwen2", "qwen3"), "f").value();
  EXPECT_EQ(qwen3.family, ModelFamily::kQwen3);
  EXPECT_EQ(qwen3.head_dim, 128) << "whatever the hidden size";
  for (const char* types : {"[]", "3", "[\"full_attention\", 3]", "[\"full_attention\", \"x\"]"}) {
    EXPECT_THAT(ErrorOf(Edit(kQwen, "[\"full_attention\", \"full_attention\"]", types)),
                HasSubstr("each of the 2 layers [C5]"))
        << types;
  }
  EXPECT_THAT(ErrorOf(Edit(kQwen, "\"vocab_size\": 7", "\"vocab_size\": 7, \"mlp_bias\": false")),
              HasSubstr("unknown key mlp_bias"));
}

std::vector<int64_t> WindowsOf(const ModelConfig& config) {
  std::vector<int64_t> windows;
  for (int64_t i = 0; i < config.layers; ++i) windows.push_back(WindowOfLayer(config, i));
  return windows;
}

TEST(ParseModelConfig, Windows) {
  const std::string on = Edit(kQwen, "\"vocab_size\": 7",
                              "\"vocab_size\": 7, \"use_sliding_window\": true, "
                              "\"sliding_window\": 5, \"max_window_layers\": 1");
  EXPECT_THAT(WindowsOf(*ParseModelConfig(on, "f")), ElementsAre(0, 0));
  EXPECT_THAT(WindowsOf(*ParseModelConfig(Edit(on, "[\"full", "[\"sliding"), "f")),
              ElementsAre(5, 0));
  EXPECT_THAT(WindowsOf(*ParseModelConfig(
                  Edit(on, "[\"full_attention\", \"full_attention\"]", "null"), "f")),
              ElementsAre(0, 5));
  EXPECT_THAT(ErrorOf(Edit(kQwen, "[\"full", "[\"sliding")), HasSubstr("no window is on [C5]"));
  const std::string mistral = Edit(kLlama, "\"llama\"", "\"mistral\"");
  EXPECT_THAT(WindowsOf(*ParseModelConfig(mistral, "f")), ElementsAre(4096, 4096));
  const std::string none =
      Edit(mistral, "\"vocab_size\"", "\"sliding_window\": null, \"vocab_size\"");
  EXPECT_THAT(WindowsOf(*ParseModelConfig(none, "f")), ElementsAre(0, 0));
  const ModelConfig gemma2 = ParseModelConfig(Edit(kLlama, "\"llama\"", "\"gemma2\""), "f").value();
  EXPECT_THAT(WindowsOf(gemma2), ElementsAre(4096, 0));
  EXPECT_EQ(gemma2.query_scalar, 256);
  EXPECT_EQ(gemma2.score_cap, 50);
  EXPECT_EQ(gemma2.logit_cap, 30);
  EXPECT_EQ(gemma2.head_dim, 256);
}

TEST(ParseModelConfig, PartialRope) {
  const std::string v4 = Edit(Edit(kLlama, "\"llama\"", "\"phi3\""), "\"vocab_size\"",
                              "\"head_dim\": 8, \"partial_rotary_factor\": 0.75, \"vocab_size\"");
  EXPECT_EQ(RotaryDims(*ParseModelConfig(v4, "f")), 6);
  const std::string v5 = Edit(v4, "\"partial_rotary_factor\": 0.75",
                              "\"rope_parameters\": {\"partial_rotary_factor\": 0.75}");
  EXPECT_TRUE(*ParseModelConfig(v4, "f") == *ParseModelConfig(v5, "f"));
  for (const char* share : {"0.7", "0.1"})
    EXPECT_THAT(ErrorOf(Edit(v4, "0.75", share)), HasSubstr("[C6]"));
  EXPECT_THAT(ErrorOf(Edit(v4, "\"phi3\"", "\"llama\"")), HasSubstr("unknown key partial_rotary"));
}

TEST(ParseModelConfig, GptNeoX) {
  const std::string text = Edit(Edit(kLlama, "\"llama\"", "\"gpt_neox\""),
                                "\"num_key_value_heads\": 2", "\"rotary_pct\": 0.5");
  const ModelConfig c = ParseModelConfig(Edit(text, "0.5", "0.34"), "f").value();
  EXPECT_EQ(RotaryDims(c), 2);
  EXPECT_TRUE(c.parallel_residual);
  EXPECT_FALSE(c.tanh_gelu);
  const std::string other =
      Edit(text, "0.5", "1, \"use_parallel_residual\": false, \"hidden_act\": \"gelu_fast\"");
  EXPECT_FALSE(ParseModelConfig(other, "f")->parallel_residual);
  EXPECT_TRUE(ParseModelConfig(other, "f")->tanh_gelu);
  EXPECT_THAT(ErrorOf(text), HasSubstr("0.5 of a head of 6 elements are 3"));
}

// What the hubs' files hold beside sizes: gpt2-medium, -large and -xl, SmolLM, SmolLM2, Qwen2.5,
// Qwen3, Phi-3, Pythia and Gemma 2.
TEST(ParseModelConfig, PublishedFilesAreRead) {
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
TEST(ParseModelConfig, PublishedEncodersAreRead) {
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

TEST(ParseModelConfig, ImagesAreCutIntoWholePatches) {
  constexpr char kVit[] = R"({
  "model_type": "vit", "num_hidden_layers": 1, "hidden_size": 8, "num_attention_heads": 2,
  "intermediate_size": 12, "image_size": [24, 40], "patch_size": 8
})";
  const ModelConfig c = ParseModelConfig(kVit, "f").value();
  EXPECT_EQ(PatchesOf(c.image), 15);
  EXPECT_EQ(c.max_positions, 16);
  EXPECT_EQ(c.vocab, 2) << "labels, if the file says nothing";
  EXPECT_THAT(
      ErrorOf(Edit(kVit, "\"patch_size\": 8", "\"patch_size\": 7")),
      HasSubstr("config.json:3:66: an image of 24 x 40 is not covered by squares of 7 [C7]"));
  for (const char* size : {"[24]", "[24, 0]", "[24, \"40\"]", "[24, 40, 3]"}) {
    EXPECT_THAT(ErrorOf(Edit(kVit, "[24, 40]", size)),
                HasSubstr("image_size must be a size, or height and width"))
        << size;
  }
  EXPECT_THAT(ErrorOf(Edit(kVit, "[24, 40]", "\"24\"")), HasSubstr("[J2]"));
}

TEST(ParseModelConfig, NothingIsDerivedFromABadSize) {
  for (const char* size : {"\"32\"", "3.5", "null", "1180591620717411303424"}) {
    const std::string error =
        ErrorOf(Edit(kGpt2, "\"n_embd\": 12", absl::StrCat("\"n_embd\": ", size)));
    EXPECT_THAT(error, HasSubstr(size[0] == '1' ? "[J3]" : "[J2]")) << size;
    EXPECT_THAT(error, testing::Not(HasSubstr("\n"))) << size;
  }
}

TEST(ParseModelConfig, AllViolationsAtOnce) {
  EXPECT_EQ(
      ErrorOf(R"({
  "model_type": "llama", "hidden_size": 24, "hiden_act": "silu",
  "num_attention_heads": 5, "num_key_value_heads": 3,
  "intermediate_size": 0, "seq_length": 17, "vocab_size": 7.5,
  "attention_bias": true, "attention_dropout": 1, "sliding_window": 4096,
  "max_position_embeddings": 16, "tie_word_embeddings": 1
})"),
      "config.json:1:1: num_hidden_layers is missing [J4]\n"
      "config.json:2:45: unknown key hiden_act (did you mean hidden_act?) [J1]\n"
      "config.json:3:26: 5 heads do not divide the hidden size 24; the nearest legal: 4 or 6 [M3]\n"
      "config.json:3:52: 3 kv heads do not divide 5 heads; the nearest legal: 1 or 5 [C1]\n"
      "config.json:4:24: intermediate_size must be from 1 to 16777216, not 0 [J3]\n"
      "config.json:4:41: the sequence length 17 is above the longest position 16; legal is 1 to 16 "
      "[M10]\n"
      "config.json:4:59: vocab_size must be an integer, not a number [J2]\n"
      "config.json:5:21: attention_bias must be false: nothing else is supported [J5]\n"
      "config.json:5:48: attention_dropout must be at least 0 and below 1, not 1 [J3]\n"
      "config.json:5:69: sliding_window must be null: Llama has none; model_type mistral has "
      "[J5]\n"
      "config.json:6:57: tie_word_embeddings must be true or false, not an integer [J2]");
}

TEST(ParseModelConfig, SingleViolations) {
  EXPECT_THAT(ErrorOf(Edit(kGpt2, "\"gpt2\"", "\"rwkv\"")),
              HasSubstr("config.json:2:17: model_type must be gpt2, llama, qwen2, qwen3, mistral, "
                        "phi3, gpt_neox, gemma, gemma2, bert or vit, not \"rwkv\" [J5]"));
  EXPECT_THAT(ErrorOf(Edit(kGpt2, "\"n_layer\": 2", "\"n_layer\": 2049")),
              HasSubstr("n_layer must be from 1 to 2048, not 2049 [J3]"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("config.json:1:1: model_type is missing [J4]"));
  EXPECT_THAT(ErrorOf("3"), HasSubstr("must be an object"));
  EXPECT_THAT(ErrorOf(Edit(kGpt2, "\"n_head\": 3", "\"n_head\": 3, \"n_head\": 3")),
              HasSubstr("config.json:4:16: the key \"n_head\" is given twice"));
  EXPECT_THAT(ErrorOf(Edit(kLlama, "\"hidden_size\": 24", "\"hidden_size\": 20")),
              HasSubstr("a head size of 5 is odd; the nearest legal: 6 [C2]"));
  EXPECT_THAT(
      ErrorOf(Edit(kGpt2, "\"n_head\": 3", "\"n_head\": 3, \"activation_function\": \"gelu\"")),
      HasSubstr("must be gelu_new or gelu_pytorch_tanh"));
  EXPECT_THAT(ErrorOf(Edit(Edit(kGpt2, "\"n_layer\": 2", "\"n_layer\": 2048"), "\"n_embd\": 12",
                           "\"n_embd\": 12000000")),
              HasSubstr("[C3]"));
}

// The sizes as published: Radford et al. 2019; Brown et al. 2020, table 2.1; Llama 3.1's
// configuration; Narayanan et al. 2021, table 1 (1,008 billion by its formula).
TEST(ModelPresets, HaveThePublishedSizes) {
  std::map<std::string, std::pair<int64_t, int64_t>> expected = {
      {"gpt2-124m", {124439808, 1024}},
      {"gpt2-tiny", {224704, 128}},
      {"gpt3-175b", {174604259328, 2048}},
      {"llama-tiny", {217792, 128}},
      {"llama3-405b", {405853388800, 8192}},
      {"megatron-1t", {1008038758400, 2048}},
      {"gemma-tiny", {250496, 128}},
      {"gemma2-tiny", {251008, 128}},
      {"gpt-neox-tiny", {232960, 128}},
      {"mistral-tiny", {217792, 128}},
      {"phi3-tiny", {217792, 128}},
      {"qwen2-tiny", {201856, 128}},
      {"qwen3-tiny", {250624, 128}},
      {"bert-tiny", {229377, 128}},
      {"vit-tiny", {214154, 16}},
  };
  std::vector<std::string> names;
  for (const ModelPreset& preset : ModelPresets()) {
    ModelConfig c = LoadModelPreset(preset.name).value();
    auto [parameters, seq_length] = expected.at(std::string(preset.name));
    EXPECT_EQ(ParameterCount(c), parameters) << preset.name;
    EXPECT_EQ(c.seq_length, seq_length) << preset.name;
    names.push_back(std::string(preset.name));
  }
  EXPECT_THAT(names,
              ElementsAre("bert-tiny", "gemma-tiny", "gemma2-tiny", "gpt-neox-tiny", "gpt2-124m",
                          "gpt2-tiny", "gpt3-175b", "llama-tiny", "llama3-405b", "megatron-1t",
                          "mistral-tiny", "phi3-tiny", "qwen2-tiny", "qwen3-tiny", "vit-tiny"));
}

TEST(ModelConfigToJson, RoundTrips) {
  for (const ModelPreset& preset : ModelPresets()) {
    ModelConfig c = LoadModelPreset(preset.name).value();
    std::string json = ModelConfigToJson(c);
    absl::StatusOr<ModelConfig> again = ParseModelConfig(json, "again");
    ASSERT_TRUE(again.ok()) << again.status() << json;
    EXPECT_TRUE(*again == c) << json;
  }
  ModelConfig c = ParseModelConfig(kLlama, "f").value();
  c.rope_theta = 1e15 / 3;
  c.attention_dropout = 0.1 + 0.2;
  EXPECT_TRUE(ParseModelConfig(ModelConfigToJson(c), "f").value() == c);
  c.tie_embeddings = true;
  EXPECT_FALSE(ParseModelConfig(kLlama, "f").value() == c);
}

TEST(LoadModelConfig, TakesPresetsAndFiles) {
  std::string path = ::testing::TempDir() + "/config.json";
  ASSERT_TRUE(WriteFileAtomically(path, kGpt2).ok());
  EXPECT_EQ(LoadModelConfig(path)->hidden, 12);
  EXPECT_EQ(LoadModelConfig("llama-tiny")->ffn, 176);
  EXPECT_THAT(LoadModelConfig("gpt2-tinny").status().message(),
              HasSubstr("did you mean gpt2-tiny?"));
  EXPECT_TRUE(absl::IsNotFound(LoadModelConfig("gpt2-tinny").status()));
  EXPECT_THAT(LoadModelConfig(::testing::TempDir()).status().message(),
              HasSubstr("it is a directory"));
  EXPECT_THAT(LoadModelPreset("x\n").status().message(),
              HasSubstr("no preset is named x\\x0A; there are bert-tiny, "));
}

// Random edits of valid files: each result is either an error with a place, or a configuration that
// round trips.
TEST(ParseModelConfig, MutatedFilesNeverCrash) {
  const unsigned seed = 4;
  std::mt19937 random(seed);
  const std::vector<std::string> pieces = {"{",
                                           "}",
                                           "\"",
                                           ":",
                                           ",",
                                           "0",
                                           "-1",
                                           "1e999",
                                           "null",
                                           "true",
                                           "[",
                                           "]",
                                           "\xff",
                                           "9223372036854775807",
                                           "16777216",
                                           "\"n_head\"",
                                           "\"rope_parameters\": {}"};
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text(ModelPresets()[random() % ModelPresets().size()].json);
    for (int edits = random() % 4; edits >= 0; --edits) {
      size_t at = random() % text.size();
      size_t length = random() % 4;
      text.replace(at, length,
                   random() % 2 == 0 ? pieces[random() % pieces.size()] : std::string(1, random()));
    }
    absl::StatusOr<ModelConfig> config = ParseModelConfig(text, "f");
    accepted += config.ok();
    if (config.ok()) {
      EXPECT_TRUE(ParseModelConfig(ModelConfigToJson(*config), "f").value() == *config)
          << "seed " << seed << text;
    } else {
      EXPECT_THAT(std::string(config.status().message()), ::testing::StartsWith("f:"))
          << "seed " << seed << text;
    }
  }
  EXPECT_GT(accepted, 10) << "seed " << seed;
  EXPECT_LT(accepted, 10000) << "seed " << seed;
}

TEST(ParseModelConfig, RandomBytesNeverCrash) {
  const unsigned seed = 5;
  std::mt19937 random(seed);
  for (int round = 0; round < 5000; ++round) {
    std::string text(random() % 200, '\0');
    for (char& byte : text) byte = static_cast<char>(random());
    EXPECT_FALSE(ParseModelConfig(text, "f").ok()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace mgc
