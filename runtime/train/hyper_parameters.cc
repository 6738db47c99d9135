#include "runtime/train/hyper_parameters.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/ir/step_names.h"

namespace mgc {
namespace {

constexpr HyperParameter kParameters[] = {
    {kBeta1Scalar, "adam-beta1", "adam, adamw: memory of the gradient", 0.9, 0, 1},
    {kBeta2Scalar, "adam-beta2", "adam, adamw: memory of its square", 0.999, 0, 1},
    {kEpsScalar, "adam-eps", "adam, adamw: added to the divisor", 1e-8, 1e-300, 1e6, false},
    {kSgdMomentumScalar, "sgd-momentum", "sgd: memory of the gradients' sum", 0.9, 0, 1},
    {kLionBeta1Scalar, "lion-beta1", "lion: share of m in what the sign is of", 0.9, 0, 1},
    {kLionBeta2Scalar, "lion-beta2", "lion: memory of the gradient", 0.99, 0, 1},
    {kMuonMomentumScalar, "muon-momentum", "muon: memory of the gradient", 0.95, 0, 1},
};

}  // namespace

absl::Span<const HyperParameter> HyperParameters() { return kParameters; }

bool TakesScalar(const Plan& plan, absl::string_view scalar) {
  const auto lists = [scalar](const PlanClass& plan_class) {
    return std::any_of(plan_class.scalars.begin(), plan_class.scalars.end(),
                       [scalar](const NamedAddress& given) { return given.name == scalar; });
  };
  return std::any_of(plan.classes.begin(), plan.classes.end(), lists);
}

double ValueOf(const HyperValues& values, const HyperParameter& parameter) {
  const auto given = values.find(parameter.scalar);
  return given == values.end() ? parameter.usual : given->second;
}

Diagnostics CheckHyperValues(const HyperValues& values) {
  Diagnostics violations;
  for (const auto& [name, value] : values) {
    const auto known = std::find_if(
        std::begin(kParameters), std::end(kParameters),
        [name = name](const HyperParameter& parameter) { return name == parameter.scalar; });
    if (known == std::end(kParameters)) {
      violations.Add("", "", absl::StrCat("no optimizer takes ", EscapeBytes(name)));
      continue;
    }
    const bool fits =
        value >= known->least && (known->open ? value < known->most : value <= known->most);
    if (fits) continue;
    violations.Add("", "",
                   absl::StrCat(known->flag, " must lie in [", known->least, ", ", known->most,
                                known->open ? ")" : "]", ", not ", value));
  }
  return violations;
}

HyperValues NumbersOfStep(const HyperValues& values, double step) {
  HyperValues numbers;
  for (const HyperParameter& parameter : kParameters) {
    numbers[parameter.scalar] = ValueOf(values, parameter);
  }
  numbers[kCorrection1Scalar] = 1 - std::pow(numbers[kBeta1Scalar], step);
  numbers[kCorrection2Scalar] = 1 - std::pow(numbers[kBeta2Scalar], step);
  return numbers;
}

}  // namespace mgc
