// Numbers that optimizers take in every step alike: rates of forgetting, and what keeps a divisor
// from zero. Learning rate and weight decay have schedules of their own.

#ifndef MGC_RUNTIME_TRAIN_HYPER_PARAMETERS_H_
#define MGC_RUNTIME_TRAIN_HYPER_PARAMETERS_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/diagnostic.h"
#include "graph/plan/plan.h"

namespace mgc {

struct HyperParameter {
  const char* scalar;  // of the step (graph/ir/step_names.h)
  const char* flag;    // without dashes; Megatron-LM's where it has one
  const char* doc;
  double usual;
  double least;  // it is that at least, ...
  double most;   // ... and that at most, or below it where `open`
  bool open = true;
};

absl::Span<const HyperParameter> HyperParameters();

// Whether the optimizers of a plan take it.
bool TakesScalar(const Plan& plan, absl::string_view scalar);

// By scalar; those that are not in it have their usual values.
using HyperValues = std::map<std::string, double>;
double ValueOf(const HyperValues& values, const HyperParameter& parameter);

// Values out of their bounds, and names of none.
Diagnostics CheckHyperValues(const HyperValues& values);

// The numbers of step `step`, the first being 1, by the names of the step's scalars: all of these,
// and Adam's corrections of its moments, 1 - beta^step.
HyperValues NumbersOfStep(const HyperValues& values, double step);

}  // namespace mgc

#endif  // MGC_RUNTIME_TRAIN_HYPER_PARAMETERS_H_
