// Activations and their gradients.
#include <cstdint>

#include "kernels/cuda/activation/activation.h"
#include "kernels/cuda/adapt.h"

namespace mgc::cuda {
namespace {

template <class T>
using UnaryLaunch = int (*)(Stream, int64_t, const T*, T*);
template <class T>
using BinaryLaunch = int (*)(Stream, int64_t, const T*, const T*, T*);
template <class T>
using GateGradLaunch = int (*)(Stream, int64_t, const T*, const T*, const T*, T*, T*);

template <class T>
KernelOr Make(const KernelSpec& spec, UnaryLaunch<T> launch) {
  return MakeKernel(spec, [launch, n = OutSize(spec, 0)](const KernelRun& run, Stream stream) {
    return launch(stream, n, In<T>(run, 0), Out<T>(run, 0));
  });
}
template <class T>
KernelOr Make(const KernelSpec& spec, BinaryLaunch<T> launch) {
  return MakeKernel(spec, [launch, n = OutSize(spec, 0)](const KernelRun& run, Stream stream) {
    return launch(stream, n, In<T>(run, 0), In<T>(run, 1), Out<T>(run, 0));
  });
}
template <class T>
KernelOr Make(const KernelSpec& spec, GateGradLaunch<T> launch) {
  return MakeKernel(spec, [launch, n = OutSize(spec, 0)](const KernelRun& run, Stream stream) {
    return launch(stream, n, In<T>(run, 0), In<T>(run, 1), In<T>(run, 2), Out<T>(run, 0),
                  Out<T>(run, 1));
  });
}

// The kernel of a function for every element type. `Launches` is one of the three above.
template <template <class> class Launches, Launches<float> wide, Launches<Bfloat16> narrow,
          Launches<Float16> half>
KernelOr MakeOf(const KernelSpec& spec) {
  if (AllAre(spec, DType::kF32)) return Make<float>(spec, wide);
  if (AllAre(spec, DType::kBF16)) return Make<Bfloat16>(spec, narrow);
  return AllAre(spec, DType::kF16) ? Make<Float16>(spec, half) : NoKernel(spec);
}

KernelOr MakeSoftCap(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    const auto cap = static_cast<float>(spec.attrs.Real("cap"));
    return MakeKernel(spec, [n = OutSize(spec, 0), cap](const KernelRun& run, Stream stream) {
      return SoftCap(stream, n, cap, In<T>(run, 0), Out<T>(run, 0));
    });
  });
}

KernelOr MakeSoftCapGrad(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    const auto cap = static_cast<float>(spec.attrs.Real("cap"));
    return MakeKernel(spec, [n = OutSize(spec, 0), cap](const KernelRun& run, Stream stream) {
      return SoftCapGrad(stream, n, cap, In<T>(run, 0), In<T>(run, 1), Out<T>(run, 0));
    });
  });
}

KernelOr MakeBiasGelu(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    const int64_t n = OutSize(spec, 0), cols = InSize(spec, 1);
    return MakeKernel(spec, [=](const KernelRun& run, Stream stream) {
      return BiasGelu(stream, n, cols, In<T>(run, 0), In<T>(run, 1), Out<T>(run, 0));
    });
  });
}

KernelOr MakeBiasGeluGrad(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    const int64_t n = OutSize(spec, 0), cols = InSize(spec, 2);
    return MakeKernel(spec, [=](const KernelRun& run, Stream stream) {
      return BiasGeluGrad(stream, n, cols, In<T>(run, 0), In<T>(run, 1), In<T>(run, 2),
                          Out<T>(run, 0));
    });
  });
}

}  // namespace

absl::Span<const KernelEntry> ActivationKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"bias_gelu", MakeBiasGelu},
      {"bias_gelu_grad", MakeBiasGeluGrad},
      {"geglu", MakeOf<BinaryLaunch, Geglu, Geglu, Geglu>},
      {"geglu_grad", MakeOf<GateGradLaunch, GegluGrad, GegluGrad, GegluGrad>},
      {"gelu", MakeOf<UnaryLaunch, Gelu, Gelu, Gelu>},
      {"gelu_grad", MakeOf<BinaryLaunch, GeluGrad, GeluGrad, GeluGrad>},
      {"gelu_erf", MakeOf<UnaryLaunch, GeluErf, GeluErf, GeluErf>},
      {"gelu_erf_grad", MakeOf<BinaryLaunch, GeluErfGrad, GeluErfGrad, GeluErfGrad>},
      {"silu", MakeOf<UnaryLaunch, Silu, Silu, Silu>},
      {"silu_grad", MakeOf<BinaryLaunch, SiluGrad, SiluGrad, SiluGrad>},
      {"soft_cap", MakeSoftCap},
      {"soft_cap_grad", MakeSoftCapGrad},
      {"softplus", MakeOf<UnaryLaunch, Softplus, Softplus, Softplus>},
      {"softplus_grad", MakeOf<BinaryLaunch, SoftplusGrad, SoftplusGrad, SoftplusGrad>},
      {"swiglu", MakeOf<BinaryLaunch, Swiglu, Swiglu, Swiglu>},
      {"swiglu_grad", MakeOf<GateGradLaunch, SwigluGrad, SwigluGrad, SwigluGrad>},
  };
  return kEntries;
}

}  // namespace mgc::cuda
