#include "kernels/cuda/adapt.h"

namespace mgc::cuda {

absl::Span<const KernelEntry> ReduceKernels() { return {}; }

}  // namespace mgc::cuda
