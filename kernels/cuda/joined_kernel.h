// Kernels that a device may issue together with others of their kind: an optimizer's steps of many
// small tensors, of which each would be a launch that takes longer than its work.

#ifndef MGC_KERNELS_CUDA_JOINED_KERNEL_H_
#define MGC_KERNELS_CUDA_JOINED_KERNEL_H_

#include "absl/types/span.h"
#include "kernels/cuda/step_part.h"
#include "kernels/kernel.h"

namespace mgc::cuda {

class JoinedKernel : public Kernel {
 public:
  // Kernels with the same one may be issued together.
  virtual IssueSteps issue() const = 0;
  // What one run is; holds nothing of it but addresses of the device.
  virtual StepPart PartOf(const KernelRun& run) const = 0;
};

// Whether a part may run beside those that come before it, in any order: none of them writes what
// another one reads or writes. Numbers are no results of steps.
bool MayJoin(absl::Span<const StepPart> before, const StepPart& part);

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_JOINED_KERNEL_H_
