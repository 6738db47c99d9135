#include "kernels/cpu/cpu_kernels.h"

#include "kernels/cpu/adapt.h"

namespace mgc {

std::vector<KernelEntry> CpuKernels() {
  std::vector<KernelEntry> all;
  for (absl::Span<const KernelEntry> family :
       {cpu::ActivationKernels(), cpu::AttentionKernels(), cpu::ElementwiseKernels(),
        cpu::EmbeddingKernels(), cpu::IdentityKernels(), cpu::LocalMoveKernels(),
        cpu::LossKernels(), cpu::MatmulKernels(), cpu::MovementKernels(), cpu::NormKernels(),
        cpu::OptimizerKernels(), cpu::PositionKernels(), cpu::ReduceKernels(), cpu::RopeKernels(),
        cpu::SoftmaxKernels()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

}  // namespace mgc
