// Ops that leave elements as they are, add to them or drop some, and constants.
#include <cstdint>

#include "kernels/cuda/adapt.h"
#include "kernels/cuda/identity/identity.h"
#include "kernels/shared/dropout_spec.h"

namespace mgc::cuda {
namespace {

KernelOr MakeConstant(const KernelSpec& spec) {
  return MakeKernel(spec, [value = spec.attrs.Real("value")](const KernelRun& run, Stream stream) {
    return FillScalar(stream, value, Out<double>(run, 0));
  });
}

template <class T>
KernelOr MakeAccumulateOf(const KernelSpec& spec) {
  return MakeKernel(spec, [n = OutSize(spec, 0)](const KernelRun& run, Stream stream) {
    return Accumulate(stream, n, In<T>(run, 0), In<T>(run, 1), Out<T>(run, 0));
  });
}

KernelOr MakeAccumulate(const KernelSpec& spec) {
  if (AllAre(spec, DType::kF64)) return MakeAccumulateOf<double>(spec);
  return AllAre(spec, DType::kF32) ? MakeAccumulateOf<float>(spec) : NoKernel(spec);
}

template <class From, class To>
KernelOr MakeCastOf(const KernelSpec& spec) {
  return MakeKernel(spec, [n = OutSize(spec, 0)](const KernelRun& run, Stream stream) {
    return Cast(stream, n, In<From>(run, 0), Out<To>(run, 0));
  });
}

KernelOr MakeCast(const KernelSpec& spec) {
  const DType from = spec.input_types[0].dtype;
  const DType to = spec.output_types[0].dtype;
  if (from == to) return MakeCopy(spec);
  if (from == DType::kF32 && to == DType::kBF16) return MakeCastOf<float, Bfloat16>(spec);
  if (from == DType::kF32 && to == DType::kF16) return MakeCastOf<float, Float16>(spec);
  if (from == DType::kF32 && to == DType::kF64) return MakeCastOf<float, double>(spec);
  if (to != DType::kF32) return NoKernel(spec);
  if (from == DType::kBF16) return MakeCastOf<Bfloat16, float>(spec);
  if (from == DType::kF16) return MakeCastOf<Float16, float>(spec);
  return from == DType::kF64 ? MakeCastOf<double, float>(spec) : NoKernel(spec);
}

KernelOr MakeDropout(const KernelSpec& spec) {
  const absl::StatusOr<DropoutUse> use = DropoutUseOf(spec);
  if (!use.ok()) return use.status();
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [use = *use](const KernelRun& run, Stream stream) {
      return Dropout(stream, use.rule, use.grid, use.sample_stride, SampleOf(run), In<T>(run, 0),
                     Out<T>(run, 0));
    });
  });
}

}  // namespace

absl::Span<const KernelEntry> IdentityKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"accumulate", MakeAccumulate}, {"cast", MakeCast},    {"constant", MakeConstant},
      {"dropout", MakeDropout},       {"reshard", MakeCopy}, {"stop_gradient", MakeCopy},
  };
  return kEntries;
}

}  // namespace mgc::cuda
