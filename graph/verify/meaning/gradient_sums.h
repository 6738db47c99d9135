// The sums in which a plan collects gradients over micro-batches.
//
// A run of a plan for its meaning starts them at random shares, owed over the axes of their
// shardings, and the single device that it is compared with adds the same values to its gradients.
// So a gradient that is zero by its nature, that of a key's bias, still shows what the reductions
// and the update make of it. Started at zero, as a training step does, it would hide a wrong scale.

#ifndef MGC_GRAPH_VERIFY_MEANING_GRADIENT_SUMS_H_
#define MGC_GRAPH_VERIFY_MEANING_GRADIENT_SUMS_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "graph/plan/plan.h"
#include "graph/verify/meaning/reference.h"
#include "graph/verify/meaning/step_inputs.h"

namespace mgc {

struct GradientSum {
  int class_index = 0;
  const Slot* slot = nullptr;  // of the sum, at an address that no action moves
  Range range;
  int layer = kNoLayer;
  std::string param;
};

// The first sum of every parameter that has one: of a tied weight, which has one for each use, the
// sum named for the weight alone. They point into `plan`.
std::vector<GradientSum> GradientSums(const Plan& plan);
std::set<std::string> ParamsOf(const std::vector<GradientSum>& sums);

// What a rank's sum starts at. The shares of ranks that owe to each other add up to the input named
// StartName (reference.h): all are random but the first's, which completes the others'.
ResidueTensor ShareOfSum(const StepInputs& inputs, const GradientSum& sum, const Mesh& mesh,
                         int64_t rank);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_MEANING_GRADIENT_SUMS_H_
