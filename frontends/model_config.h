// Model configurations: the sizes and constants of the model families, as files.
//
// A file is JSON with the keys of Hugging Face's `config.json`. The list of keys is closed: a key
// that is not known could change the mathematics and is an error; keys known to change nothing are
// noted and ignored. Three keys are ours where Hugging Face has none (docs/model-config.md):
//   seq_length               all families: the sequence length trained with unless a flag says
//                            otherwise; if absent, the longest
//   embd_pdrop, resid_pdrop  llama and its kin: dropout after the embedding and before each
//                            residual addition, as in gpt2; if absent, 0

#ifndef MGC_FRONTENDS_MODEL_CONFIG_H_
#define MGC_FRONTENDS_MODEL_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "graph/base/json.h"
#include "graph/types/model_dims.h"

namespace mgc {

// What each is made of: frontends/families.h.
enum class ModelFamily {
  kGpt2,
  kLlama,
  kQwen2,
  kQwen3,
  kMistral,
  kPhi3,
  kGptNeoX,
  kGemma,
  kGemma2,
  kBert,
  kVit,
};

// What a vision transformer is given: images of so many pixels, cut into squares.
struct ImageSizes {
  int64_t height = 0;
  int64_t width = 0;
  int64_t patch = 0;  // its height and width; divides those of the image
  int64_t channels = 0;
};

// The stretched RoPE frequencies of Llama 3.1 (rope_type `llama3`).
struct Llama3RopeScaling {
  double factor = 8;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  int64_t original_max_positions = 8192;
};

// Where the compiler cannot fold equal layers, each is compiled on its own: so many take some ten
// seconds and two gigabytes.
inline constexpr int64_t kMaxModelLayers = 2048;

struct ModelConfig {
  ModelFamily family = ModelFamily::kGpt2;
  int64_t layers = 0;
  int64_t hidden = 0;  // the dim `embed`
  int64_t heads = 0;
  int64_t kv_heads = 0;  // divides heads; equal to it in gpt2
  int64_t head_dim = 0;  // of a family's own, or hidden / heads
  int64_t ffn = 0;       // the dim `mlp`
  int64_t vocab = 0;     // logical, never padded
  int64_t max_positions = 0;
  int64_t seq_length = 0;        // the default, at most max_positions
  double embedding_dropout = 0;  // after the embedding
  double hidden_dropout = 0;     // on what is added to the residual stream
  double attention_dropout = 0;  // on attention probabilities
  double norm_epsilon = 1e-5;
  bool tie_embeddings = false;  // the head is the word embedding
  double initializer_range = 0.02;
  double rope_theta = 10000;  // of families with RoPE, as what follows
  absl::optional<Llama3RopeScaling> rope_scaling;
  double rotary_share = 1;  // of each head's elements, rounded down: what RoPE turns
  // Queries see this many keys, themselves and those before them; 0: all. `windowed[i % size]` says
  // whether layer i does; empty: every layer.
  int64_t window = 0;
  std::vector<bool> windowed;
  bool parallel_residual = false;  // both parts of a block read its input (gpt_neox)
  bool tanh_gelu = false;          // GELU in its tanh form (gpt_neox, bert, vit)
  double query_scalar = 0;         // scores are over its root; 0: the size of a head
  double score_cap = 0;            // soft cap of attention's scores; 0: none
  double logit_cap = 0;            // of the logits
  int64_t segments = 0;            // kinds of them that words may be of (bert)
  ImageSizes image;                // vit, whose vocabulary is its labels
};

bool operator==(const ModelConfig& a, const ModelConfig& b);

// Elements of all logical parameters, a tied head counted once.
int64_t ParameterCount(const ModelConfig& config);

// Elements of a head that RoPE turns, the first ones.
int64_t RotaryDims(const ModelConfig& config);

// Patches of an image, and numbers in each.
int64_t PatchesOf(const ImageSizes& image);
int64_t PatchSize(const ImageSizes& image);

// The target that is not to be found, as everywhere with Hugging Face.
inline constexpr int64_t kIgnoredTarget = -100;

// Keys that a query of layer `layer` sees; 0: all.
int64_t WindowOfLayer(const ModelConfig& config, int64_t layer);

// The sizes that decide how the model may be spread over ranks.
ModelDims DimsOf(const ModelConfig& config);

// Parses `text`; `file` stands for it in messages. The errors are InvalidArgument, one line for
// each violation, "file:line:col: what [label]": J1 to J5 of graph/base/json_reader.h,
// Megatron-LM's
//   M3   heads that do not divide the hidden size, where the size of a head is not given
//   M10  a sequence length above the longest position
// and
//   C1   kv heads that do not divide the heads
//   C2   an odd head size with RoPE
//   C3   more than 1e15 parameters
//   C4   a RoPE low_freq_factor that is not below high_freq_factor
//   C5   layer_types that are none, not one for each layer, or windows where none is on
//   C6   a share of a head that RoPE cannot turn: not an even number of elements
//   C7   an image that patches do not cover exactly
// `notes`, unless null, receives a line for each key that was ignored.
absl::StatusOr<ModelConfig> ParseModelConfig(absl::string_view text, absl::string_view file,
                                             std::vector<std::string>* notes = nullptr);

// The same of a parsed value, which may be part of a larger file.
absl::StatusOr<ModelConfig> ParseModelConfig(const JsonValue& root, absl::string_view file,
                                             std::vector<std::string>* notes = nullptr);

// `config` as a file that parses to an equal one.
std::string ModelConfigToJson(const ModelConfig& config);

// A configuration that is part of the program.
struct ModelPreset {
  absl::string_view name;
  absl::string_view json;
};

// All presets, sorted by name: the files of frontends/presets.
absl::Span<const ModelPreset> ModelPresets();

// The configuration of a preset; NotFound names the presets.
absl::StatusOr<ModelConfig> LoadModelPreset(absl::string_view name);

// A preset if there is one of this name, otherwise the file at this path.
absl::StatusOr<ModelConfig> LoadModelConfig(const std::string& preset_or_path,
                                            std::vector<std::string>* notes = nullptr);

}  // namespace mgc

#endif  // MGC_FRONTENDS_MODEL_CONFIG_H_
