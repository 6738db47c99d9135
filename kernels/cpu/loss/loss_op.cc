// The pieces of the cross-entropy.
#include "kernels/cpu/adapt.h"
#include "kernels/cpu/loss/loss.h"
#include "kernels/shared/loss_spec.h"

namespace mgc::cpu {
namespace {

KernelOr MakeCounted(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  const int64_t ignore = spec.attrs.Int("ignore");
  return MakeKernel(spec, [n = OutSize(spec, 0), ignore](const KernelRun& run, Parallel& parallel) {
    Counted(parallel, n, ignore, In<int64_t>(run, 0), Y(run, 0));
  });
}

KernelOr MakeExpSum(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [s = LogitsOf(spec)](const KernelRun& run, Parallel& parallel) {
      ExpSum(parallel, s, In<T>(run, 0), X(run, 1), Y(run, 0));
    });
  });
}

KernelOr MakeExpSumGrad(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [s = LogitsOf(spec)](const KernelRun& run, Parallel& parallel) {
      ExpSumGrad(parallel, s, In<T>(run, 0), X(run, 1), X(run, 2), Out<T>(run, 0));
    });
  });
}

KernelOr MakeLogShift(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  return MakeKernel(spec, [n = OutSize(spec, 0)](const KernelRun& run, Parallel& parallel) {
    LogShift(parallel, n, X(run, 0), X(run, 1), Y(run, 0));
  });
}

KernelOr MakePick(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [s = LogitsOf(spec)](const KernelRun& run, Parallel& parallel) {
      Pick(parallel, s, In<T>(run, 0), In<int64_t>(run, 1), Y(run, 0));
    });
  });
}

KernelOr MakePickGrad(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [s = LogitsOf(spec)](const KernelRun& run, Parallel& parallel) {
      PickGrad(parallel, s, In<int64_t>(run, 1), X(run, 2), Out<T>(run, 0));
    });
  });
}

KernelOr MakeCrossEntropyGrad(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [s = LogitsOf(spec)](const KernelRun& run, Parallel& parallel) {
      CrossEntropyGrad(parallel, s, In<T>(run, 0), X(run, 1), X(run, 2), In<int64_t>(run, 3),
                       X(run, 4), Out<T>(run, 0));
    });
  });
}

}  // namespace

absl::Span<const KernelEntry> LossKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"counted", MakeCounted},    {"cross_entropy_grad", MakeCrossEntropyGrad},
      {"exp_sum", MakeExpSum},     {"exp_sum_grad", MakeExpSumGrad},
      {"log_shift", MakeLogShift}, {"pick", MakePick},
      {"pick_grad", MakePickGrad},
  };
  return kEntries;
}

}  // namespace mgc::cpu
