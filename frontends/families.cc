#include "frontends/families.h"

#include <cstddef>

namespace mgc {
namespace {

using Activation = MlpOptions::Activation;

// LayerNorm and biases everywhere.
constexpr FamilyTraits WithBiases(FamilyTraits traits, Activation activation) {
  traits.activation = activation;
  traits.layer_norm = traits.qkv_bias = traits.out_bias = traits.mlp_bias = true;
  return traits;
}

// Radford et al. 2019.
constexpr FamilyTraits Gpt2() {
  FamilyTraits traits =
      WithBiases({"gpt2", "GPT2LMHeadModel", ModelFamily::kGpt2}, Activation::kGelu);
  traits.learned_positions = true;
  return traits;
}

// Yang et al. 2024.
constexpr FamilyTraits Qwen2() {
  FamilyTraits traits = {"qwen2", "Qwen2ForCausalLM", ModelFamily::kQwen2};
  traits.qkv_bias = true;
  return traits;
}

// Yang et al. 2025.
constexpr FamilyTraits Qwen3() {
  FamilyTraits traits = {"qwen3", "Qwen3ForCausalLM", ModelFamily::kQwen3};
  traits.qk_norm = true;
  return traits;
}

// Black et al. 2022.
constexpr FamilyTraits GptNeoX() {
  return WithBiases({"gpt_neox", "GPTNeoXForCausalLM", ModelFamily::kGptNeoX},
                    Activation::kGeluErf);
}

// Gemma team 2024. The norms of its files multiply by 1 + weight; the parameter here is that sum.
constexpr FamilyTraits Gemma() {
  FamilyTraits traits = {"gemma", "GemmaForCausalLM", ModelFamily::kGemma};
  traits.activation = Activation::kGeglu;
  traits.scaled_embedding = true;
  return traits;
}

constexpr FamilyTraits Gemma2() {
  FamilyTraits traits = Gemma();
  traits.family = ModelFamily::kGemma2;
  traits.model_type = "gemma2";
  traits.architecture = "Gemma2ForCausalLM";
  traits.post_norms = true;
  return traits;
}

// Devlin et al. 2018.
constexpr FamilyTraits Bert() {
  FamilyTraits traits =
      WithBiases({"bert", "BertForMaskedLM", ModelFamily::kBert}, Activation::kGeluErf);
  traits.learned_positions = traits.norms_of_sums = true;
  traits.bidirectional = traits.masked_words = true;
  return traits;
}

// Dosovitskiy et al. 2020.
constexpr FamilyTraits Vit() {
  FamilyTraits traits =
      WithBiases({"vit", "ViTForImageClassification", ModelFamily::kVit}, Activation::kGeluErf);
  traits.learned_positions = true;
  traits.bidirectional = traits.images = true;
  return traits;
}

constexpr FamilyTraits kFamilies[] = {
    Gpt2(),
    {"llama", "LlamaForCausalLM", ModelFamily::kLlama},  // Touvron et al. 2023
    Qwen2(),
    Qwen3(),
    {"mistral", "MistralForCausalLM", ModelFamily::kMistral},  // Jiang et al. 2023
    {"phi3", "Phi3ForCausalLM", ModelFamily::kPhi3},           // Abdin et al. 2024
    GptNeoX(),
    Gemma(),
    Gemma2(),
    Bert(),
    Vit(),
};

}  // namespace

absl::Span<const FamilyTraits> ModelFamilies() { return kFamilies; }

const FamilyTraits& TraitsOf(ModelFamily family) { return kFamilies[static_cast<size_t>(family)]; }

MlpOptions::Activation ActivationOf(const ModelConfig& config) {
  return config.tanh_gelu ? Activation::kGelu : TraitsOf(config.family).activation;
}

}  // namespace mgc
