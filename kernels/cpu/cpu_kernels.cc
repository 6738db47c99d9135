#include "kernels/cpu/cpu_kernels.h"

#include "kernels/cpu/adapt.h"

namespace mgc {

std::vector<KernelEntry> CpuKernels() {
  std::vector<KernelEntry> all;
  for (absl::Span<const KernelEntry> family :
       {cpu::ElementwiseKernels(), cpu::IdentityKernels(), cpu::LossKernels(), cpu::MatmulKernels(),
        cpu::MovementKernels(), cpu::NetworkKernels(), cpu::ReduceKernels(),
        cpu::SoftmaxKernels()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

}  // namespace mgc
