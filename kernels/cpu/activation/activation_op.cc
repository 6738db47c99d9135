// Activations and their gradients.
#include <algorithm>
#include <cstdint>

#include "kernels/cpu/activation/activation.h"
#include "kernels/cpu/adapt.h"

namespace mgc::cpu {
namespace {

// The kernel of a function of one or two operands, for every element type.
template <UnaryKernel<float> wide, UnaryKernel<Bfloat16> narrow, UnaryKernel<Float16> half>
KernelOr MakeOf(const KernelSpec& spec) {
  if (AllAre(spec, DType::kF32)) return MakeUnary<float>(spec, wide);
  if (AllAre(spec, DType::kBF16)) return MakeUnary<Bfloat16>(spec, narrow);
  return AllAre(spec, DType::kF16) ? MakeUnary<Float16>(spec, half) : NoKernel(spec);
}
template <BinaryKernel<float> wide, BinaryKernel<Bfloat16> narrow, BinaryKernel<Float16> half>
KernelOr MakeOf(const KernelSpec& spec) {
  if (AllAre(spec, DType::kF32)) return MakeBinary<float>(spec, wide);
  if (AllAre(spec, DType::kBF16)) return MakeBinary<Bfloat16>(spec, narrow);
  return AllAre(spec, DType::kF16) ? MakeBinary<Float16>(spec, half) : NoKernel(spec);
}

template <class T>
using GateGradKernel = void (*)(Parallel&, int64_t, const T*, const T*, const T*, T*, T*);

template <class T>
KernelOr MakeGateGradOf(const KernelSpec& spec, GateGradKernel<T> kernel) {
  return MakeKernel(spec, [=, n = OutSize(spec, 0)](const KernelRun& run, Parallel& parallel) {
    kernel(parallel, n, In<T>(run, 0), In<T>(run, 1), In<T>(run, 2), Out<T>(run, 0),
           Out<T>(run, 1));
  });
}

template <GateGradKernel<float> wide, GateGradKernel<Bfloat16> narrow, GateGradKernel<Float16> half>
KernelOr MakeGateGrad(const KernelSpec& spec) {
  if (AllAre(spec, DType::kF32)) return MakeGateGradOf<float>(spec, wide);
  if (AllAre(spec, DType::kBF16)) return MakeGateGradOf<Bfloat16>(spec, narrow);
  return AllAre(spec, DType::kF16) ? MakeGateGradOf<Float16>(spec, half) : NoKernel(spec);
}

KernelOr MakeSoftCap(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    const auto cap = static_cast<float>(spec.attrs.Real("cap"));
    return MakeKernel(spec, [n = OutSize(spec, 0), cap](const KernelRun& run, Parallel& parallel) {
      SoftCap(parallel, n, cap, In<T>(run, 0), Out<T>(run, 0));
    });
  });
}

KernelOr MakeSoftCapGrad(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    const auto cap = static_cast<float>(spec.attrs.Real("cap"));
    return MakeKernel(spec, [n = OutSize(spec, 0), cap](const KernelRun& run, Parallel& parallel) {
      SoftCapGrad(parallel, n, cap, In<T>(run, 0), In<T>(run, 1), Out<T>(run, 0));
    });
  });
}

KernelOr MakeBiasGelu(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    const int64_t cols = InSize(spec, 1);
    const int64_t rows = InSize(spec, 0) / std::max<int64_t>(cols, 1);
    return MakeKernel(spec, [=](const KernelRun& run, Parallel& parallel) {
      BiasGelu(parallel, rows, cols, In<T>(run, 0), In<T>(run, 1), Out<T>(run, 0));
    });
  });
}

KernelOr MakeBiasGeluGrad(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    const int64_t cols = InSize(spec, 2);
    const int64_t rows = InSize(spec, 0) / std::max<int64_t>(cols, 1);
    return MakeKernel(spec, [=](const KernelRun& run, Parallel& parallel) {
      BiasGeluGrad(parallel, rows, cols, In<T>(run, 0), In<T>(run, 1), In<T>(run, 2),
                   Out<T>(run, 0));
    });
  });
}

}  // namespace

absl::Span<const KernelEntry> ActivationKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"bias_gelu", MakeBiasGelu},
      {"bias_gelu_grad", MakeBiasGeluGrad},
      {"geglu", MakeOf<Geglu, Geglu, Geglu>},
      {"geglu_grad", MakeGateGrad<GegluGrad, GegluGrad, GegluGrad>},
      {"gelu", MakeOf<Gelu, Gelu, Gelu>},
      {"gelu_grad", MakeOf<GeluGrad, GeluGrad, GeluGrad>},
      {"gelu_erf", MakeOf<GeluErf, GeluErf, GeluErf>},
      {"gelu_erf_grad", MakeOf<GeluErfGrad, GeluErfGrad, GeluErfGrad>},
      {"silu", MakeOf<Silu, Silu, Silu>},
      {"silu_grad", MakeOf<SiluGrad, SiluGrad, SiluGrad>},
      {"soft_cap", MakeSoftCap},
      {"soft_cap_grad", MakeSoftCapGrad},
      {"softplus", MakeOf<Softplus, Softplus, Softplus>},
      {"softplus_grad", MakeOf<SoftplusGrad, SoftplusGrad, SoftplusGrad>},
      {"swiglu", MakeOf<Swiglu, Swiglu, Swiglu>},
      {"swiglu_grad", MakeGateGrad<SwigluGrad, SwigluGrad, SwigluGrad>},
  };
  return kEntries;
}

}  // namespace mgc::cpu
