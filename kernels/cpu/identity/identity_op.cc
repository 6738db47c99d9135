// Ops that leave elements as they are, add to them or drop some, and constants.
#include <cstdint>

#include "kernels/cpu/adapt.h"
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/random/random.h"
#include "kernels/shared/dropout_spec.h"

namespace mgc::cpu {
namespace {

KernelOr MakeConstant(const KernelSpec& spec) {
  return MakeKernel(spec, [value = spec.attrs.Real("value")](const KernelRun& run, Parallel&) {
    *Out<double>(run, 0) = value;
  });
}

KernelOr MakeAccumulate(const KernelSpec& spec) {
  if (AllAre(spec, DType::kF64)) {
    return MakeKernel(spec, [n = OutSize(spec, 0)](const KernelRun& run, Parallel&) {
      const double *a = In<double>(run, 0), *b = In<double>(run, 1);
      for (int64_t i = 0; i < n; ++i) Out<double>(run, 0)[i] = a[i] + b[i];
    });
  }
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  return MakeKernel(spec, [n = OutSize(spec, 0)](const KernelRun& run, Parallel& parallel) {
    Add(parallel, n, {{X(run, 0), n}, {X(run, 1), n}}, Y(run, 0));
  });
}

template <class From>
KernelOr MakeCastFrom(const KernelSpec& spec) {
  const int64_t n = OutSize(spec, 0);
  const auto plain = [&](auto to) {
    return MakeKernel(spec, [n](const KernelRun& run, Parallel&) {
      using To = decltype(to);
      for (int64_t i = 0; i < n; ++i) Out<To>(run, 0)[i] = static_cast<To>(In<From>(run, 0)[i]);
    });
  };
  if (spec.output_types[0].dtype == DType::kF64) return plain(double());
  return plain(float());
}

template <class From, class To>
KernelOr MakeCastOf(const KernelSpec& spec) {
  return MakeKernel(spec, [n = OutSize(spec, 0)](const KernelRun& run, Parallel& parallel) {
    Cast(parallel, n, In<From>(run, 0), Out<To>(run, 0));
  });
}

// Between f32 and narrower types for tensors; what has to do with f64 is a scalar or two.
KernelOr MakeCast(const KernelSpec& spec) {
  const DType from = spec.input_types[0].dtype;
  const DType to = spec.output_types[0].dtype;
  if (from == to) return MakeCopy(spec);
  const bool widens = to == DType::kF32, rounds = from == DType::kF32;
  if (rounds && to == DType::kBF16) return MakeCastOf<float, Bfloat16>(spec);
  if (rounds && to == DType::kF16) return MakeCastOf<float, Float16>(spec);
  if (widens && from == DType::kBF16) return MakeCastOf<Bfloat16, float>(spec);
  if (widens && from == DType::kF16) return MakeCastOf<Float16, float>(spec);
  if (from == DType::kF64 && to == DType::kF32) return MakeCastFrom<double>(spec);
  if (from == DType::kF32 && to == DType::kF64) return MakeCastFrom<float>(spec);
  return NoKernel(spec);
}

KernelOr MakeDropout(const KernelSpec& spec) {
  const absl::StatusOr<DropoutUse> use = DropoutUseOf(spec);
  if (!use.ok()) return use.status();
  return ForElements(spec, [&](auto zero) {
    using T = decltype(zero);
    return MakeKernel(spec, [use = *use](const KernelRun& run, Parallel& parallel) {
      IndexGrid here = use.grid;
      here.base += static_cast<uint64_t>(run.first_sample) * use.sample_stride;
      Dropout(parallel, use.rule, here, In<T>(run, 0), Out<T>(run, 0));
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

}  // namespace mgc::cpu
