// One tensor's step of an optimizer, as a launch takes it: plain, for device code too.

#ifndef MGC_KERNELS_CUDA_STEP_PART_H_
#define MGC_KERNELS_CUDA_STEP_PART_H_

#include <cstdint>

#include "kernels/cuda/launch_shape.h"

namespace mgc::cuda {

// What a step reads and makes: `operands` and `results` arrays of n elements, as many as the step
// has, and the numbers in the order of its op's operands.
struct StepArrays {
  static constexpr int kMostOperands = 4, kMostResults = 3, kMostNumbers = 8;

  const float* operands[kMostOperands] = {};
  float* results[kMostResults] = {};
  const double* numbers[kMostNumbers] = {};
  // The step is taken where this is not 0; null: always. Where it is 0 result r is operand
  // kept[r], or zero where kept[r] is -1.
  const double* apply = nullptr;
  int kept[kMostResults] = {-1, -1, -1};
};

struct StepPart {
  int64_t n = 0;
  bool decays = false;  // whether the weight decay counts
  StepArrays arrays;
};

// Issues steps of one optimizer to a stream: those of many tensors in few launches. None may read
// or write what another writes (MayJoin). A cudaError_t.
using IssueSteps = int (*)(Stream stream, const StepPart* parts, int count);

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_STEP_PART_H_
