#include "frontends/model_config.h"

#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontends/families.h"
#include "graph/base/file.h"
#include "graph/base/suggest.h"

namespace mgc {
namespace {

auto Fields(const Llama3RopeScaling& s) {
  return std::tie(s.factor, s.low_freq_factor, s.high_freq_factor, s.original_max_positions);
}

auto Fields(const ImageSizes& i) { return std::tie(i.height, i.width, i.patch, i.channels); }

auto Fields(const ModelConfig& c) {
  return std::tie(c.family, c.layers, c.hidden, c.heads, c.kv_heads, c.head_dim, c.ffn, c.vocab,
                  c.max_positions, c.seq_length, c.embedding_dropout, c.hidden_dropout,
                  c.attention_dropout, c.norm_epsilon, c.tie_embeddings, c.initializer_range,
                  c.rope_theta, c.rotary_share, c.window, c.windowed, c.parallel_residual,
                  c.tanh_gelu, c.query_scalar, c.score_cap, c.logit_cap, c.segments);
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
  if (Fields(a.image) != Fields(b.image)) return false;
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

int64_t RotaryDims(const ModelConfig& config) {
  return static_cast<int64_t>(static_cast<double>(config.head_dim) * config.rotary_share);
}

int64_t PatchesOf(const ImageSizes& image) {
  return image.patch == 0 ? 0 : (image.height / image.patch) * (image.width / image.patch);
}

int64_t PatchSize(const ImageSizes& image) { return image.patch * image.patch * image.channels; }

int64_t WindowOfLayer(const ModelConfig& config, int64_t layer) {
  if (config.windowed.empty()) return config.window;
  const size_t place = static_cast<size_t>(layer) % config.windowed.size();
  return config.windowed[place] ? config.window : 0;
}

namespace {

// Elements of embedding and head, positions apart; a norm's are `norm`.
int64_t EndsCount(const ModelConfig& c, const FamilyTraits& traits, int64_t norm) {
  if (traits.images) {
    const int64_t embedding = (PatchSize(c.image) + 2) * c.hidden;  // bias and class row
    return embedding + norm + c.vocab * (c.hidden + 1);
  }
  const int64_t words = c.vocab * c.hidden * (c.tie_embeddings ? 1 : 2);
  if (!traits.masked_words) return words + norm;
  return words + (c.segments + c.hidden + 1) * c.hidden + 2 * norm + c.vocab;
}

}  // namespace

int64_t ParameterCount(const ModelConfig& c) {
  const FamilyTraits& traits = TraitsOf(c.family);
  const int64_t queries = c.heads * c.head_dim;
  const int64_t keys_values = 2 * c.kv_heads * c.head_dim;
  const int64_t norm = c.hidden * (traits.layer_norm ? 2 : 1);
  const bool gated = IsGated(traits.activation);
  int64_t layer = c.hidden * (2 * queries + keys_values) + c.hidden * c.ffn * (gated ? 3 : 2) +
                  (traits.post_norms ? 4 : 2) * norm;
  if (traits.qkv_bias) layer += queries + keys_values;
  if (traits.out_bias) layer += c.hidden;
  if (traits.mlp_bias) layer += c.hidden + c.ffn * (gated ? 2 : 1);
  if (traits.qk_norm) layer += 2 * c.head_dim;
  const int64_t positions = traits.learned_positions ? c.max_positions * c.hidden : 0;
  return c.layers * layer + positions + EndsCount(c, traits, norm);
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
