#include "kernels/cuda/adapt.h"

namespace mgc::cuda {

absl::Span<const KernelEntry> PositionKernels() { return {}; }

}  // namespace mgc::cuda
