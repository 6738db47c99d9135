#include "frontends/families.h"

#include <cstddef>

namespace mgc {
namespace {

constexpr auto kGelu = MlpOptions::Activation::kGelu;
constexpr auto kSwiglu = MlpOptions::Activation::kSwiglu;

constexpr FamilyTraits kFamilies[] = {
    // Radford et al. 2019.
    {ModelFamily::kGpt2, "gpt2", "GPT2LMHeadModel", /*layer_norm=*/true,
     /*learned_positions=*/true, /*qkv_bias=*/true, /*out_bias=*/true, /*mlp_bias=*/true,
     /*qk_norm=*/false, kGelu},
    // Touvron et al. 2023.
    {ModelFamily::kLlama, "llama", "LlamaForCausalLM", /*layer_norm=*/false,
     /*learned_positions=*/false, /*qkv_bias=*/false, /*out_bias=*/false, /*mlp_bias=*/false,
     /*qk_norm=*/false, kSwiglu},
    // Yang et al. 2024.
    {ModelFamily::kQwen2, "qwen2", "Qwen2ForCausalLM", /*layer_norm=*/false,
     /*learned_positions=*/false, /*qkv_bias=*/true, /*out_bias=*/false, /*mlp_bias=*/false,
     /*qk_norm=*/false, kSwiglu},
    // Yang et al. 2025.
    {ModelFamily::kQwen3, "qwen3", "Qwen3ForCausalLM", /*layer_norm=*/false,
     /*learned_positions=*/false, /*qkv_bias=*/false, /*out_bias=*/false, /*mlp_bias=*/false,
     /*qk_norm=*/true, kSwiglu},
};

}  // namespace

absl::Span<const FamilyTraits> ModelFamilies() { return kFamilies; }

const FamilyTraits& TraitsOf(ModelFamily family) { return kFamilies[static_cast<size_t>(family)]; }

}  // namespace mgc
