#include "kernels/cuda/adapt.h"

namespace mgc::cuda {

absl::Span<const KernelEntry> OptimizerKernels() { return {}; }

}  // namespace mgc::cuda
