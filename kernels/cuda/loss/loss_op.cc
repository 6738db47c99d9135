// The pieces of the cross-entropy.
#include <cstdint>

#include "kernels/cuda/adapt.h"
#include "kernels/cuda/loss/loss.h"
#include "kernels/shared/loss_spec.h"

namespace mgc::cuda {
namespace {

KernelOr MakeCounted(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  const int64_t ignore = spec.attrs.Int("ignore");
  return MakeKernel(spec, [n = OutSize(spec, 0), ignore](const KernelRun& run, Stream stream) {
    return Counted(stream, n, ignore, In<int64_t>(run, 0), Out<float>(run, 0));
  });
}

KernelOr MakeExpSum(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [s = LogitsOf(spec)](const KernelRun& run, Stream stream) {
      return ExpSum(stream, s, In<T>(run, 0), In<float>(run, 1), Out<float>(run, 0));
    });
  });
}

KernelOr MakeExpSumGrad(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [s = LogitsOf(spec)](const KernelRun& run, Stream stream) {
      return ExpSumGrad(stream, s, In<T>(run, 0), In<float>(run, 1), In<float>(run, 2),
                        Out<T>(run, 0));
    });
  });
}

KernelOr MakeLogShift(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  return MakeKernel(spec, [n = OutSize(spec, 0)](const KernelRun& run, Stream stream) {
    return LogShift(stream, n, In<float>(run, 0), In<float>(run, 1), Out<float>(run, 0));
  });
}

KernelOr MakePick(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [s = LogitsOf(spec)](const KernelRun& run, Stream stream) {
      return Pick(stream, s, In<T>(run, 0), In<int64_t>(run, 1), Out<float>(run, 0));
    });
  });
}

KernelOr MakePickGrad(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [s = LogitsOf(spec)](const KernelRun& run, Stream stream) {
      return PickGrad(stream, s, In<int64_t>(run, 1), In<float>(run, 2), Out<T>(run, 0));
    });
  });
}

KernelOr MakeCrossEntropyGrad(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [s = LogitsOf(spec)](const KernelRun& run, Stream stream) {
      return CrossEntropyGrad(stream, s, In<T>(run, 0), In<float>(run, 1), In<float>(run, 2),
                              In<int64_t>(run, 3), In<float>(run, 4), Out<T>(run, 0));
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

}  // namespace mgc::cuda
