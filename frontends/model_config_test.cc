#include "frontends/model_config.h"

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontends/testing/config_text.h"
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
      {"gpt2-124m", {124439808, 1024}},       {"gpt2-tiny", {224704, 128}},
      {"gpt3-1.3b", {1315723264, 2048}},      {"gpt3-175b", {174604259328, 2048}},
      {"llama-tiny", {217792, 128}},          {"llama3-405b", {405853388800, 8192}},
      {"megatron-1t", {1008038758400, 2048}}, {"gemma-tiny", {250496, 128}},
      {"gemma2-tiny", {251008, 128}},         {"gpt-neox-tiny", {232960, 128}},
      {"mistral-tiny", {217792, 128}},        {"phi3-tiny", {217792, 128}},
      {"qwen2-tiny", {201856, 128}},          {"qwen3-tiny", {250624, 128}},
      {"bert-tiny", {229377, 128}},           {"vit-tiny", {214154, 16}},
  };
  std::vector<std::string> names;
  for (const ModelPreset& preset : ModelPresets()) {
    ModelConfig c = LoadModelPreset(preset.name).value();
    auto [parameters, seq_length] = expected.at(std::string(preset.name));
    EXPECT_EQ(ParameterCount(c), parameters) << preset.name;
    EXPECT_EQ(c.seq_length, seq_length) << preset.name;
    names.push_back(std::string(preset.name));
  }
  EXPECT_THAT(names, ElementsAre("bert-tiny", "gemma-tiny", "gemma2-tiny", "gpt-neox-tiny",
                                 "gpt2-124m", "gpt2-tiny", "gpt3-1.3b", "gpt3-175b", "llama-tiny",
                                 "llama3-405b", "megatron-1t", "mistral-tiny", "phi3-tiny",
                                 "qwen2-tiny", "qwen3-tiny", "vit-tiny"));
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
