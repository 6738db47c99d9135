#include "kernels/cuda/adapt.h"

namespace mgc::cuda {

absl::Span<const KernelEntry> ElementwiseKernels() { return {}; }

}  // namespace mgc::cuda
