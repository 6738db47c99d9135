#include "frontends/losses.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace mgc {

Tensor CrossEntropy(ModelBuilder& b, Tensor logits, Tensor targets, double smoothing,
                    CallSite site) {
  const TensorType* type = b.Type(logits, site);
  if (type == nullptr) return b.Failed();
  if (type->ndim() == 0) return b.Fail("logits need a dim of entries", site);
  if (!(smoothing >= 0 && smoothing < 1)) {
    return b.Fail(absl::StrCat("label smoothing ", smoothing, " is not in [0, 1)"), site);
  }
  const std::vector<int64_t> last = {type->ndim() - 1};
  const double entries = static_cast<double>(type->dims.back().size);
  const Tensor max = b.Op("reduce_max", {logits}, {{"dims", last}}, site);
  const Tensor m = b.Op("stop_gradient", {max}, {}, site);
  const Tensor z = b.Op("exp_sum", {logits, m}, {}, site);
  const Tensor lse = b.Op("log_shift", {z, m}, {}, site);
  Tensor expected = b.Op("pick", {logits, targets}, {}, site);
  if (smoothing > 0) {
    // Both are sums over a vocabulary that may be cut, and paid together.
    const Tensor all = b.Op("reduce_sum", {logits}, {{"dims", last}}, site);
    expected = b.Op("add",
                    {b.Op("scale", {expected}, {{"value", 1 - smoothing}}, site),
                     b.Op("scale", {all}, {{"value", smoothing / entries}}, site)},
                    {}, site);
  }
  return b.Op("sub", {lse, expected}, {}, site);
}

Tensor CountedTargets(ModelBuilder& b, Tensor targets, int64_t ignore, CallSite site) {
  return b.Op("counted", {targets}, {{"ignore", ignore}}, site);
}

Tensor SquaredError(ModelBuilder& b, Tensor x, Tensor y, CallSite site) {
  const Tensor difference = b.Op("sub", {x, y}, {}, site);
  return b.Op("mul", {difference, difference}, {}, site);
}

Tensor BinaryCrossEntropy(ModelBuilder& b, Tensor logits, Tensor labels, CallSite site) {
  const Tensor zero = b.Op("softplus", {logits}, {}, site);
  return b.Op("sub", {zero, b.Op("mul", {logits, labels}, {}, site)}, {}, site);
}

Tensor SumOverLast(ModelBuilder& b, Tensor x, CallSite site) {
  const TensorType* type = b.Type(x, site);
  if (type == nullptr) return b.Failed();
  return b.Op("reduce_sum", {x}, {{"dims", std::vector<int64_t>{type->ndim() - 1}}}, site);
}

void LossTerm(ModelBuilder& b, absl::string_view name, Tensor losses, Tensor weights, double weight,
              CallSite site) {
  b.Loss(name, b.Op("weighted_sum", {losses, weights}, {}, site), weight, site);
}

void ReportCount(ModelBuilder& b, Tensor weights, CallSite site) {
  b.Report(kCountReport, b.Op("total", {weights}, {}, site), site);
}

void CrossEntropyLoss(ModelBuilder& b, Tensor logits, const CrossEntropyOptions& options,
                      CallSite site) {
  const TensorType* type = b.Type(logits, site);
  if (type == nullptr) return;
  if (type->ndim() != 3) {
    b.Fail(absl::StrCat("logits must be [batch, seq, vocab], not ", type->ToString()), site);
    return;
  }
  const Tensor targets = b.Targets(site);
  const Tensor losses = CrossEntropy(b, logits, targets, options.smoothing, site);
  const Tensor weights =
      options.ignore ? CountedTargets(b, targets, *options.ignore, site) : b.Weights(site);
  LossTerm(b, kLossReport, losses, weights, 1, site);
  ReportCount(b, weights, site);
}

}  // namespace mgc
