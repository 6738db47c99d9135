#include "examples/mixer_model.h"

#include <utility>
#include <vector>

#include "frontends/builder.h"
#include "frontends/layers.h"
#include "frontends/losses.h"
#include "graph/ir/step_names.h"

namespace mgc {
namespace {

constexpr double kEpsilon = 1e-6;

// [batch, patch, embed] to [batch, embed, patch], and back.
Tensor Turned(ModelBuilder& b, Tensor x) {
  return b.Op("transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
}

Tensor MixPatches(ModelBuilder& b, Tensor x) {
  LinearOptions biased;
  biased.bias = true;
  const Tensor turned = Turned(b, LayerNorm(b, "norm1", x, kEpsilon));
  ModelBuilder::Scope scope = b.In("tokens");
  const Tensor up = b.Op("gelu_erf", {Linear(b, "up", turned, "patch -> token_mlp", biased)});
  return Add(b, {x, Turned(b, Linear(b, "down", up, "token_mlp -> patch", biased))});
}

Tensor MixChannels(ModelBuilder& b, Tensor x) {
  MlpOptions options;
  options.activation = MlpOptions::Activation::kGeluErf;
  options.bias = true;
  return Mlp(b, "mlp", LayerNorm(b, "norm2", x, kEpsilon), x, options);
}

}  // namespace

absl::StatusOr<Graph> MixerModel(const MixerSizes& sizes, int64_t batch) {
  ModelBuilder b("mixer", {{batch, "batch"},
                           {sizes.patches, "patch"},
                           {sizes.pixels, "pixel"},
                           {sizes.hidden, "embed"},
                           {sizes.tokens_ffn, "token_mlp"},
                           {sizes.ffn, "mlp"},
                           {sizes.labels, "vocab"}});
  Tensor x;
  {
    ModelBuilder::Scope embedding = b.EmbeddingLayer();
    LinearOptions biased;
    biased.bias = true;
    const Tensor patches = b.Data("patches", "batch patch pixel", DType::kF32);
    x = Linear(b, "patch", patches, "pixel -> embed", biased);
  }
  for (int i = 0; i < sizes.layers; ++i) {
    ModelBuilder::Scope layer = b.Layer(i);
    x = MixChannels(b, MixPatches(b, x));
  }
  ModelBuilder::Scope head = b.Head();
  const Tensor sum =
      b.Op("reduce_sum", {LayerNorm(b, "norm", x, kEpsilon)}, {{"dims", std::vector<int64_t>{1}}});
  const Tensor mean = b.Op("scale", {sum}, {{"value", 1.0 / static_cast<double>(sizes.patches)}});
  const Tensor table = b.Param("", "vocab embed", NormalInit(0.02));
  const Tensor logits = Add(b, {Logits(b, mean, table), b.Param("bias", "vocab", ZerosInit())});
  const Tensor weights = b.Data(kWeightsInput, "batch", DType::kF32);
  LossTerm(b, kLossReport, CrossEntropy(b, logits, b.Data("labels", "batch", DType::kI64)),
           weights);
  ReportCount(b, weights);
  return std::move(b).Finish();
}

}  // namespace mgc
