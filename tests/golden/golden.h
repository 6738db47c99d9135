// The golden values of tests/golden/*.json, with the inputs that their formulas give (README.md
// there).
#ifndef MGC_TESTS_GOLDEN_GOLDEN_H_
#define MGC_TESTS_GOLDEN_GOLDEN_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "frontends/model_config.h"

namespace mgc {

// Parameter name to values in row-major order.
using GoldenTensors = std::map<std::string, std::vector<double>>;

// The result for one choice of weights.
struct GoldenLoss {
  double loss = 0;  // sum of weight times negative log likelihood in nats
  GoldenTensors gradients;
};

// Updates by AdamW with clipping on the mean loss per token, weights all 1, always the same batch.
struct GoldenTraining {
  double lr, beta1, beta2, eps, weight_decay, clip_grad;
  std::vector<double> losses;      // before each update
  std::vector<double> grad_norms;  // of the mean's gradient, before clipping
  GoldenTensors parameters;        // after the last update
};

struct Golden {
  ModelConfig config;   // of a model of examples/: the sequence length and vocabulary of its tokens
  std::string example;  // which; empty: the configuration says the model
  int64_t batch = 0;
  std::map<std::string, std::vector<int64_t>> shapes;
  GoldenTensors parameters;
  std::vector<int64_t> tokens, targets;  // [batch, seq]
  std::vector<double> weights;           // [batch, seq]; with images [batch]
  GoldenTensors inputs;  // further data inputs, or other targets, as the file has them
  GoldenLoss sum;        // all weights 1
  absl::optional<GoldenLoss> weighted;  // by `weights`, where the model has any
  absl::optional<GoldenTraining> adamw;
};

// The files, without folder and ending.
inline constexpr absl::string_view kGoldenNames[] = {
    "gpt2",         "gpt2_untied", "llama",   "llama_gqa",   "llama_rope", "qwen2",
    "qwen2_window", "qwen3",       "mistral", "phi3",        "gpt_neox",   "gpt_neox_sequential",
    "gemma",        "gemma2",      "bert",    "bert_untied", "vit"};

// Those of models of examples/.
inline constexpr absl::string_view kGoldenExamples[] = {"t5", "mixer"};

// Reads tests/golden/<name>.json below the working directory of a test.
absl::StatusOr<Golden> LoadGolden(absl::string_view name);

}  // namespace mgc

#endif  // MGC_TESTS_GOLDEN_GOLDEN_H_
