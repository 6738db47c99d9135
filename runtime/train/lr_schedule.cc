#include "runtime/train/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "graph/base/file.h"
#include "graph/base/suggest.h"

namespace mgc {
namespace {

constexpr double kPi = 3.14159265358979323846;

template <typename Style>
absl::StatusOr<Style> FindStyle(absl::string_view what, absl::string_view name,
                                absl::Span<const std::pair<absl::string_view, Style>> styles) {
  std::vector<absl::string_view> names;
  for (const auto& [style_name, style] : styles) {
    if (style_name == name) return style;
    names.push_back(style_name);
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown ", what, " ", EscapeBytes(name),
                                                 DidYouMean(name, names), "; legal are ",
                                                 absl::StrJoin(names, ", ")));
}

double CosineFall(double ratio) { return 0.5 * (std::cos(kPi * ratio) + 1); }

// How far above min_lr the rate still is, from 1 to 0, after `samples` samples of a WSD schedule.
double WsdCoefficient(const LrSchedule& schedule, int64_t samples) {
  int64_t fall_start = schedule.decay_samples - schedule.wsd_decay_samples;
  if (samples <= fall_start) return 1;
  double ratio =
      static_cast<double>(samples - fall_start) / static_cast<double>(schedule.wsd_decay_samples);
  switch (schedule.wsd_style) {
    case WsdDecayStyle::kLinear:
      return 1 - ratio;
    case WsdDecayStyle::kCosine:
      return CosineFall(ratio);
    case WsdDecayStyle::kExponential:
      return 2 * std::pow(0.5, ratio) - 1;
    case WsdDecayStyle::kMinusSquareRoot:
      return 1 - std::sqrt(ratio);
  }
  return 0;
}

double InverseSquareRoot(const LrSchedule& schedule, int64_t samples) {
  double warmup = static_cast<double>(std::max<int64_t>(schedule.warmup_samples, 1));
  double seen = static_cast<double>(std::max<int64_t>(samples, 1));
  return std::max(schedule.min_lr, schedule.max_lr * std::sqrt(warmup) / std::sqrt(seen));
}

}  // namespace

absl::StatusOr<LrDecayStyle> ParseLrDecayStyle(absl::string_view name) {
  return FindStyle<LrDecayStyle>("learning rate decay style", name,
                                 {{"constant", LrDecayStyle::kConstant},
                                  {"linear", LrDecayStyle::kLinear},
                                  {"cosine", LrDecayStyle::kCosine},
                                  {"inverse-square-root", LrDecayStyle::kInverseSquareRoot},
                                  {"WSD", LrDecayStyle::kWsd}});
}

absl::StatusOr<WsdDecayStyle> ParseWsdDecayStyle(absl::string_view name) {
  return FindStyle<WsdDecayStyle>("WSD decay style", name,
                                  {{"exponential", WsdDecayStyle::kExponential},
                                   {"linear", WsdDecayStyle::kLinear},
                                   {"cosine", WsdDecayStyle::kCosine},
                                   {"minus_sqrt", WsdDecayStyle::kMinusSquareRoot}});
}

absl::StatusOr<WeightDecayStyle> ParseWeightDecayStyle(absl::string_view name) {
  return FindStyle<WeightDecayStyle>("weight decay style", name,
                                     {{"constant", WeightDecayStyle::kConstant},
                                      {"linear", WeightDecayStyle::kLinear},
                                      {"cosine", WeightDecayStyle::kCosine}});
}

Diagnostics CheckSchedule(const LrSchedule& s) {
  Diagnostics violations;
  const auto require = [&violations](bool holds, const auto&... text) {
    if (!holds) violations.Add("", "", absl::StrCat(text...));
  };
  require(std::isfinite(s.max_lr) && s.max_lr >= 0,
          "the learning rate must be finite and at least 0, not ", s.max_lr);
  require(s.min_lr >= 0 && s.min_lr <= s.max_lr,
          "the least learning rate must be from 0 to the learning rate ", s.max_lr, ", not ",
          s.min_lr);
  require(s.init_lr >= 0 && s.init_lr <= s.max_lr,
          "the learning rate where warm-up starts must be from 0 to the learning rate ", s.max_lr,
          ", not ", s.init_lr);
  require(s.decay_samples > 0, "learning rate decay must take at least 1 sample, not ",
          s.decay_samples);
  require(s.warmup_samples >= 0 && s.warmup_samples < s.decay_samples,
          "learning rate warm-up must take from 0 to fewer than the ", s.decay_samples,
          " samples of decay, not ", s.warmup_samples);
  require(s.style != LrDecayStyle::kWsd ||
              (s.wsd_decay_samples > 0 && s.wsd_decay_samples <= s.decay_samples),
          "the falling part of WSD must take from 1 to the ", s.decay_samples,
          " samples of decay, not ", s.wsd_decay_samples);
  return violations;
}

Diagnostics CheckSchedule(const WeightDecaySchedule& s) {
  Diagnostics violations;
  const auto require = [&violations](bool holds, const auto&... text) {
    if (!holds) violations.Add("", "", absl::StrCat(text...));
  };
  require(s.start >= 0 && s.start <= s.end && std::isfinite(s.end),
          "weight decay must be finite, at least 0 and not fall, not from ", s.start, " to ",
          s.end);
  require(s.style != WeightDecayStyle::kConstant || s.start == s.end,
          "constant weight decay must end where it starts, at ", s.start, ", not at ", s.end);
  require(s.increase_samples > 0, "weight decay must increase over at least 1 sample, not ",
          s.increase_samples);
  return violations;
}

double LearningRate(const LrSchedule& s, int64_t samples) {
  if (s.warmup_samples > 0 && samples <= s.warmup_samples) {
    return s.init_lr + (s.max_lr - s.init_lr) * static_cast<double>(samples) /
                           static_cast<double>(s.warmup_samples);
  }
  if (s.style == LrDecayStyle::kConstant) return s.max_lr;
  if (samples > s.decay_samples) return s.min_lr;
  if (s.style == LrDecayStyle::kInverseSquareRoot) return InverseSquareRoot(s, samples);

  double ratio = static_cast<double>(samples - s.warmup_samples) /
                 static_cast<double>(s.decay_samples - s.warmup_samples);
  double coefficient = s.style == LrDecayStyle::kLinear   ? 1 - ratio
                       : s.style == LrDecayStyle::kCosine ? CosineFall(ratio)
                                                          : WsdCoefficient(s, samples);
  return s.min_lr + coefficient * (s.max_lr - s.min_lr);
}

double WeightDecay(const WeightDecaySchedule& s, int64_t samples) {
  if (s.style == WeightDecayStyle::kConstant || samples > s.increase_samples) return s.end;
  double ratio = static_cast<double>(samples) / static_cast<double>(s.increase_samples);
  double coefficient = s.style == WeightDecayStyle::kLinear ? ratio : CosineFall(1 - ratio);
  return s.start + coefficient * (s.end - s.start);
}

}  // namespace mgc
