#include "kernels/cuda/adapt.h"

namespace mgc::cuda {

absl::Span<const KernelEntry> MatmulKernels() { return {}; }

}  // namespace mgc::cuda
