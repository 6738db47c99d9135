// The first step of TrainOnSamples in float64, by reference evaluation of the model on one device:
// what f32 runs are held against where they differ from each other by more than is usual.
//
// A model may amplify rounding, by deep products without norms or by sums that cancel. Then f32 on
// one rank is as far from the true numbers as f32 on many is, and how far apart the two are says
// nothing. A plan that is wrong is farther from float64 than one rank, whatever the model.

#ifndef MGC_TESTS_SAME_LOSS_STEP_IN_DOUBLE_H_
#define MGC_TESTS_SAME_LOSS_STEP_IN_DOUBLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/plan/plan.h"
#include "tests/same_loss/train_plan.h"

namespace mgc {

struct StepInDouble {
  double loss = 0;
  double grad_norm = 0;
  std::map<std::string, std::vector<double>> gradients;  // of the mean loss
};

// Takes the first step of a plan of one rank.
absl::StatusOr<StepInDouble> TakeStepInDouble(const Plan& plan, uint64_t seed);

// Whether f32 on one rank is off by more than 1e-2, relative, in the first loss, the norm of
// gradients or a gradient in the L2 norm: numbers too small for f32, sums of which nothing is left.
// Such a model says nothing about plans.
bool IsBeyondF32(const StepInDouble& exact, const TrainResult& one);

// How `many` is farther from `exact` than rounding takes `one`, empty where it is not. The first
// loss and the norm of gradients may be off by 1e-6, each gradient by 1e-5 in the L2 norm, all
// relative, or each by 4 times what it is off by on one rank (the norm: what all gradients are off
// by together), whichever is more. Losses behind updates, which follow from gradients, may be apart
// by 1e-5 or 4 times what the farthest gradient of one rank is off by. What cancels is compared as
// by Difference(). The model is not beyond f32.
std::string DifferenceFrom(const StepInDouble& exact, const TrainResult& one,
                           const TrainResult& many);

}  // namespace mgc

#endif  // MGC_TESTS_SAME_LOSS_STEP_IN_DOUBLE_H_
