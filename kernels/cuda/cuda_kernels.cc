#include "kernels/cuda/cuda_kernels.h"

#include "kernels/cuda/adapt.h"

namespace mgc {

std::vector<KernelEntry> CudaKernels(F32Products f32) {
  std::vector<KernelEntry> all;
  for (absl::Span<const KernelEntry> family :
       {cuda::ActivationKernels(), cuda::AttentionKernels(), cuda::ElementwiseKernels(),
        cuda::EmbeddingKernels(), cuda::IdentityKernels(), cuda::LocalMoveKernels(),
        cuda::LossKernels(), cuda::MatmulKernels(f32), cuda::MovementKernels(), cuda::NormKernels(),
        cuda::OptimizerKernels(), cuda::PositionKernels(), cuda::ReduceKernels(),
        cuda::RopeKernels(), cuda::SoftmaxKernels()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

}  // namespace mgc
