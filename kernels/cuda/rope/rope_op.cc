#include "kernels/cuda/adapt.h"

namespace mgc::cuda {

absl::Span<const KernelEntry> RopeKernels() { return {}; }

}  // namespace mgc::cuda
