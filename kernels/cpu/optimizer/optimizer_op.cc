// The optimizer.
#include <cmath>
#include <cstdint>

#include "kernels/cpu/adapt.h"
#include "kernels/cpu/optimizer/optimizer.h"

namespace mgc::cpu {
namespace {

// A guarded step that is not to be taken leaves its operands as they are.
void Keep(const KernelRun& run, Parallel& parallel, int64_t elements) {
  const int64_t bytes = elements * static_cast<int64_t>(sizeof(float));
  CopyBytes(parallel, bytes, X(run, 0), Y(run, 0));
  CopyBytes(parallel, bytes, X(run, 2), Y(run, 1));
  CopyBytes(parallel, bytes, X(run, 3), Y(run, 2));
}

template <bool kGuarded>
KernelOr MakeAdamw(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32) || spec.input_types[0].dtype != DType::kF32) return NoKernel(spec);
  const bool decays = spec.attrs.Int("decay") != 0;
  return MakeKernel(spec, [=, n = OutSize(spec, 0)](const KernelRun& run, Parallel& parallel) {
    const auto scalar = [&run](int i) { return *In<double>(run, i); };
    if (kGuarded && scalar(12) == 0) return Keep(run, parallel, n);
    AdamwScalars s;
    s.lr = scalar(4);
    s.decay = decays ? scalar(5) : 0;
    s.beta1 = scalar(6);
    s.beta2 = scalar(7);
    s.eps = scalar(8);
    s.correction1 = scalar(9);
    s.correction2 = scalar(10);
    s.grad_scale = scalar(11);
    Adamw(parallel, n, s, X(run, 0), X(run, 1), X(run, 2), X(run, 3), Y(run, 0), Y(run, 1),
          Y(run, 2));
  });
}

KernelOr MakeIsFinite(const KernelSpec& spec) {
  const int64_t n = OutSize(spec, 0);
  const auto plain = [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [n](const KernelRun& run, Parallel&) {
      for (int64_t i = 0; i < n; ++i) {
        Out<T>(run, 0)[i] = static_cast<T>(std::isfinite(In<T>(run, 0)[i]) ? 1 : 0);
      }
    });
  };
  if (AllAre(spec, DType::kF64)) return plain(double());
  return AllAre(spec, DType::kF32) ? plain(float()) : NoKernel(spec);
}

KernelOr MakeBiasCorrection(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF64)) return NoKernel(spec);
  return MakeKernel(spec, [](const KernelRun& run, Parallel&) {
    *Out<double>(run, 0) = 1 - std::pow(*In<double>(run, 0), *In<double>(run, 1) + 1);
  });
}

KernelOr MakeNextLossScale(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF64)) return NoKernel(spec);
  return MakeKernel(spec, [](const KernelRun& run, Parallel&) {
    const auto scalar = [&run](int i) { return *In<double>(run, i); };
    LossScale state = {scalar(0), scalar(1), scalar(2)};
    state = NextLossScale(state, scalar(3) != 0, {scalar(4), scalar(5), scalar(6)});
    *Out<double>(run, 0) = state.scale;
    *Out<double>(run, 1) = state.growth;
    *Out<double>(run, 2) = state.left;
  });
}

}  // namespace

absl::Span<const KernelEntry> OptimizerKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"adamw", MakeAdamw<false>},
      {"bias_correction", MakeBiasCorrection},
      {"guarded_adamw", MakeAdamw<true>},
      {"is_finite", MakeIsFinite},
      {"next_loss_scale", MakeNextLossScale},
  };
  return kEntries;
}

}  // namespace mgc::cpu
