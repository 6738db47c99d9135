// The scale of a loss whose gradients are of f16, as Megatron-LM has it: it begins high, is halved
// when gradients overflow, and doubled after enough steps in which none did. Plans carry it from
// step to step (PlanClass::carried) and follow the rule; here is what they begin with and are told.

#ifndef MGC_RUNTIME_TRAIN_LOSS_SCALE_H_
#define MGC_RUNTIME_TRAIN_LOSS_SCALE_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "graph/base/diagnostic.h"
#include "runtime/run/executor.h"

namespace mgc {

struct LossScaleOptions {
  absl::optional<double> fixed;  // instead of all others: a scale that neither falls nor grows
  double initial = 4294967296.0;
  double min = 1;
  int64_t window = 1000;   // steps without an overflow, behind which it grows
  int64_t hysteresis = 2;  // overflows behind which it falls; growth begins the count anew
};

// Scales are positive and finite, the first is not below the least, counts at least 1.
Diagnostics CheckLossScale(const LossScaleOptions& options);

// Puts on every rank what the first step finds. A plan that carries nothing stays as it is.
void StartLossScale(const LossScaleOptions& options, Executor& executor);

// What a step is told of the rule.
std::vector<NamedScalar> ScalarsOf(const LossScaleOptions& options);

}  // namespace mgc

#endif  // MGC_RUNTIME_TRAIN_LOSS_SCALE_H_
