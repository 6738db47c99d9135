#include "kernels/cuda/adapt.h"

namespace mgc::cuda {

absl::Span<const KernelEntry> MovementKernels() { return {}; }

}  // namespace mgc::cuda
