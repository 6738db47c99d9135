// Activations and their gradients.
#include <cstdint>

#include "kernels/cuda/activation/activation.h"
#include "kernels/cuda/adapt.h"

namespace mgc::cuda {
namespace {

KernelOr MakeGelu(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [n = OutSize(spec, 0)](const KernelRun& run, Stream stream) {
      return Gelu(stream, n, In<T>(run, 0), Out<T>(run, 0));
    });
  });
}

KernelOr MakeGeluGrad(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [n = OutSize(spec, 0)](const KernelRun& run, Stream stream) {
      return GeluGrad(stream, n, In<T>(run, 0), In<T>(run, 1), Out<T>(run, 0));
    });
  });
}

}  // namespace

absl::Span<const KernelEntry> ActivationKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"gelu", MakeGelu},
      {"gelu_grad", MakeGeluGrad},
  };
  return kEntries;
}

}  // namespace mgc::cuda
