#include "runtime/train/loss_scale.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "graph/ir/step_names.h"
#include "runtime/state/carried.h"

namespace mgc {
namespace {

// A fixed scale is one that cannot fall and never grows.
double LeastOf(const LossScaleOptions& o) { return o.fixed.value_or(o.min); }
double WindowOf(const LossScaleOptions& o) {
  return o.fixed.has_value() ? std::numeric_limits<double>::infinity()
                             : static_cast<double>(o.window);
}

}  // namespace

Diagnostics CheckLossScale(const LossScaleOptions& o) {
  Diagnostics violations;
  const auto require = [&violations](bool holds, const auto&... text) {
    if (!holds) violations.Add("", "", absl::StrCat(text...));
  };
  const auto scale = [&require](const char* what, double value) {
    require(std::isfinite(value) && value > 0, what, " must be positive and finite, not ", value);
  };
  if (o.fixed.has_value()) {
    scale("the loss scale", *o.fixed);
    return violations;
  }
  scale("the first loss scale", o.initial);
  scale("the least loss scale", o.min);
  require(o.initial >= o.min, "the first loss scale ", o.initial, " is below the least, ", o.min);
  require(o.window >= 1, "the loss scale cannot grow after ", o.window, " steps");
  require(o.hysteresis >= 1, "the loss scale cannot fall after ", o.hysteresis, " overflows");
  return violations;
}

void StartLossScale(const LossScaleOptions& o, Executor& executor) {
  CarriedNumbers starts = {{kLossScale, o.fixed.value_or(o.initial)},
                           {kHysteresisLeft, static_cast<double>(o.hysteresis)}};
  for (const PlanClass& plan_class : executor.plan().classes) {
    for (const NamedAddress& carried : plan_class.carried) starts.emplace(carried.name, 0);
  }
  PutCarried(starts, executor);
}

std::vector<NamedScalar> ScalarsOf(const LossScaleOptions& o) {
  return {{kMinScaleScalar, LeastOf(o)},
          {kScaleWindowScalar, WindowOf(o)},
          {kHysteresisScalar, static_cast<double>(o.hysteresis)}};
}

}  // namespace mgc
