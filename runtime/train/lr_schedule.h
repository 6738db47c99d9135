// The learning rate and the weight decay as functions of the samples seen so far.
//
// Both follow Megatron-LM's OptimizerParamScheduler in style names, formulas and the unit (samples,
// so that a change of batch size does not change the schedule); they enter a step as scalar inputs
// of the update graph.
#ifndef MGC_RUNTIME_TRAIN_LR_SCHEDULE_H_
#define MGC_RUNTIME_TRAIN_LR_SCHEDULE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/diagnostic.h"

namespace mgc {

enum class LrDecayStyle { kConstant, kLinear, kCosine, kInverseSquareRoot, kWsd };

// The last part of warm-up, stable, decay (WSD).
enum class WsdDecayStyle { kExponential, kLinear, kCosine, kMinusSquareRoot };

enum class WeightDecayStyle { kConstant, kLinear, kCosine };

struct LrSchedule {
  LrDecayStyle style = LrDecayStyle::kLinear;
  double init_lr = 0;  // where warm-up starts
  double max_lr = 0;
  double min_lr = 0;
  int64_t warmup_samples = 0;
  // Counted from the first sample, warm-up included; afterwards the rate is min_lr.
  int64_t decay_samples = 1;
  WsdDecayStyle wsd_style = WsdDecayStyle::kExponential;
  // The last samples of decay_samples, in which a WSD schedule falls.
  int64_t wsd_decay_samples = 1;
};

struct WeightDecaySchedule {
  WeightDecayStyle style = WeightDecayStyle::kConstant;
  double start = 0;
  double end = 0;  // equal to start if constant
  int64_t increase_samples = 1;
};

// Megatron's names of the styles: constant, linear, cosine, inverse-square-root, WSD; exponential,
// linear, cosine, minus_sqrt; constant, linear, cosine. InvalidArgument names the legal ones.
absl::StatusOr<LrDecayStyle> ParseLrDecayStyle(absl::string_view name);
absl::StatusOr<WsdDecayStyle> ParseWsdDecayStyle(absl::string_view name);
absl::StatusOr<WeightDecayStyle> ParseWeightDecayStyle(absl::string_view name);

// Every violated condition: rates finite and 0 <= min_lr <= max_lr, 0 <= init_lr <= max_lr, 0 <=
// warmup < decay, 0 < wsd_decay <= decay under WSD; 0 <= start <= end, increase_samples > 0.
Diagnostics CheckSchedule(const LrSchedule& schedule);
Diagnostics CheckSchedule(const WeightDecaySchedule& schedule);

// The rate of the step that begins after `samples` samples, of a schedule that passes
// CheckSchedule. A constant schedule ignores min_lr and decay_samples.
double LearningRate(const LrSchedule& schedule, int64_t samples);

// The decay of the step that begins after `samples` samples.
double WeightDecay(const WeightDecaySchedule& schedule, int64_t samples);

}  // namespace mgc

#endif  // MGC_RUNTIME_TRAIN_LR_SCHEDULE_H_
