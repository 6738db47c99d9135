#include "kernels/cuda/adapt.h"

namespace mgc::cuda {

absl::Span<const KernelEntry> AttentionKernels() { return {}; }

}  // namespace mgc::cuda
