#include "kernels/cuda/adapt.h"

namespace mgc::cuda {

absl::Span<const KernelEntry> EmbeddingKernels() { return {}; }

}  // namespace mgc::cuda
