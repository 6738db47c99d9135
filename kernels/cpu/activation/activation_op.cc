// Activations and their gradients.
#include <algorithm>
#include <cstdint>

#include "kernels/cpu/activation/activation.h"
#include "kernels/cpu/adapt.h"

namespace mgc::cpu {
namespace {

template <UnaryKernel kernel>
KernelOr MakeOf(const KernelSpec& spec) {
  return MakeUnary(spec, kernel);
}
template <BinaryKernel kernel>
KernelOr MakeOf(const KernelSpec& spec) {
  return MakeBinary(spec, kernel);
}

using GateGradKernel = void (*)(Parallel&, int64_t, const float*, const float*, const float*,
                                float*, float*);

template <GateGradKernel kernel>
KernelOr MakeGateGrad(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  return MakeKernel(spec, [n = OutSize(spec, 0)](const KernelRun& run, Parallel& parallel) {
    kernel(parallel, n, X(run, 0), X(run, 1), X(run, 2), Y(run, 0), Y(run, 1));
  });
}

KernelOr MakeSoftCap(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  const auto cap = static_cast<float>(spec.attrs.Real("cap"));
  return MakeKernel(spec, [n = OutSize(spec, 0), cap](const KernelRun& run, Parallel& parallel) {
    SoftCap(parallel, n, cap, X(run, 0), Y(run, 0));
  });
}

KernelOr MakeSoftCapGrad(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  const auto cap = static_cast<float>(spec.attrs.Real("cap"));
  return MakeKernel(spec, [n = OutSize(spec, 0), cap](const KernelRun& run, Parallel& parallel) {
    SoftCapGrad(parallel, n, cap, X(run, 0), X(run, 1), Y(run, 0));
  });
}

KernelOr MakeBiasGelu(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  const int64_t cols = InSize(spec, 1);
  const int64_t rows = InSize(spec, 0) / std::max<int64_t>(cols, 1);
  return MakeKernel(spec, [=](const KernelRun& run, Parallel& parallel) {
    BiasGelu(parallel, rows, cols, X(run, 0), X(run, 1), Y(run, 0));
  });
}

KernelOr MakeBiasGeluGrad(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  const int64_t cols = InSize(spec, 2);
  const int64_t rows = InSize(spec, 0) / std::max<int64_t>(cols, 1);
  return MakeKernel(spec, [=](const KernelRun& run, Parallel& parallel) {
    BiasGeluGrad(parallel, rows, cols, X(run, 0), X(run, 1), X(run, 2), Y(run, 0));
  });
}

}  // namespace

absl::Span<const KernelEntry> ActivationKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"bias_gelu", MakeBiasGelu},    {"bias_gelu_grad", MakeBiasGeluGrad},
      {"geglu", MakeOf<Geglu>},       {"geglu_grad", MakeGateGrad<GegluGrad>},
      {"gelu", MakeOf<Gelu>},         {"gelu_grad", MakeOf<GeluGrad>},
      {"gelu_erf", MakeOf<GeluErf>},  {"gelu_erf_grad", MakeOf<GeluErfGrad>},
      {"silu", MakeOf<Silu>},         {"silu_grad", MakeOf<SiluGrad>},
      {"soft_cap", MakeSoftCap},      {"soft_cap_grad", MakeSoftCapGrad},
      {"softplus", MakeOf<Softplus>}, {"softplus_grad", MakeOf<SoftplusGrad>},
      {"swiglu", MakeOf<Swiglu>},     {"swiglu_grad", MakeGateGrad<SwigluGrad>},
  };
  return kEntries;
}

}  // namespace mgc::cpu
