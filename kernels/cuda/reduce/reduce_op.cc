// Reductions and broadcast. The common forms (one run of neighbouring dims) are fast; any other set
// of dims is reduced by one thread for each element of the result.
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/adapt.h"
#include "kernels/cuda/reduce/reduce.h"
#include "kernels/shared/reduce_spec.h"

namespace mgc::cuda {
namespace {

// False where the box has more dims than device code takes.
bool MakeIndexBox(const Box& box, IndexBox* made) {
  const Box merged = Merged(box);
  if (merged.extents.size() > IndexBox::kMostDims) return false;
  made->size = merged.size();
  made->dims = static_cast<int>(merged.extents.size());
  for (size_t d = 0; d < merged.extents.size(); ++d) {
    made->extents[d] = merged.extents[d];
    made->strides[d] = merged.strides[d];
  }
  return true;
}

template <class T, class R>
KernelOr MakeAnySum(const KernelSpec& spec) {
  const Reduction r = ReductionOf(spec);
  IndexBox kept, reduced;
  if (!MakeIndexBox(r.kept, &kept) || !MakeIndexBox(r.reduced, &reduced)) return NoKernel(spec);
  return MakeKernel(spec, [=](const KernelRun& run, Stream stream) {
    return SumAny(stream, kept, reduced, In<T>(run, 0), Out<R>(run, 0));
  });
}

template <class T, class R>
KernelOr MakeSumOf(const KernelSpec& spec) {
  int64_t outer, reduced, inner;
  if (!IsOneRun(spec, &outer, &reduced, &inner)) return MakeAnySum<T, R>(spec);
  // Sums along rows need none.
  const int64_t bytes = inner == 1 ? 0 : WorkspaceBoundOf(spec, KernelHost::kGpu);
  const auto issue = [=](const KernelRun& run, Stream stream) {
    const PartsRoom room = PartsRoom::In(run.workspace, bytes, outer * inner);
    return SumMiddle(stream, outer, reduced, inner, room, In<T>(run, 0), Out<R>(run, 0));
  };
  return MakeKernel(spec, issue, bytes);
}

// make(element, result) for reductions that keep the type or widen it to f32, by values of both.
template <class Make>
KernelOr ForReduced(const KernelSpec& spec, const Make& make) {
  const DType from = spec.input_types[0].dtype, to = spec.output_types[0].dtype;
  if (from == DType::kF32 && to == from) return make(float(), float());
  if (from == DType::kBF16 && to == from) return make(Bfloat16(), Bfloat16());
  if (from == DType::kF16 && to == from) return make(Float16(), Float16());
  if (from == DType::kBF16 && to == DType::kF32) return make(Bfloat16(), float());
  if (from == DType::kF16 && to == DType::kF32) return make(Float16(), float());
  return NoKernel(spec);
}

KernelOr MakeReduceSum(const KernelSpec& spec) {
  const DType from = spec.input_types[0].dtype;
  if (from == DType::kF64 && spec.output_types[0].dtype == from) {
    return MakeAnySum<double, double>(spec);
  }
  return ForReduced(spec, [&](auto element, auto result) {
    return MakeSumOf<decltype(element), decltype(result)>(spec);
  });
}

template <class T, class R>
KernelOr MakeMaxOf(const KernelSpec& spec) {
  const Reduction r = ReductionOf(spec);
  if (ReducesLastDim(spec)) {
    const int64_t rows = LeadingDims(spec.input_shapes[0]), cols = LastDim(spec.input_shapes[0]);
    return MakeKernel(spec, [=, valid = r.reduced.extents[0]](const KernelRun& run, Stream stream) {
      return RowMax(stream, rows, cols, valid, In<T>(run, 0), Out<R>(run, 0));
    });
  }
  IndexBox kept, reduced;
  if (!MakeIndexBox(r.kept, &kept) || !MakeIndexBox(r.reduced, &reduced)) return NoKernel(spec);
  return MakeKernel(spec, [=](const KernelRun& run, Stream stream) {
    return MaxAny(stream, kept, reduced, In<T>(run, 0), Out<R>(run, 0));
  });
}

KernelOr MakeReduceMax(const KernelSpec& spec) {
  return ForReduced(spec, [&](auto element, auto result) {
    return MakeMaxOf<decltype(element), decltype(result)>(spec);
  });
}

// make(value) for the real type.
template <class Make>
KernelOr ForReal(const KernelSpec& spec, DType dtype, const Make& make) {
  if (dtype == DType::kF32) return make(float());
  if (dtype == DType::kF64) return make(double());
  if (dtype == DType::kBF16) return make(Bfloat16());
  if (dtype == DType::kF16) return make(Float16());
  return NoKernel(spec);
}

KernelOr MakeBroadcast(const KernelSpec& spec) {
  IndexBox box;
  if (!MakeIndexBox(BroadcastBox(spec), &box)) return NoKernel(spec);
  return ForReal(spec, spec.input_types[0].dtype, [&](auto element) {
    return ForReal(spec, spec.output_types[0].dtype, [&](auto result) -> KernelOr {
      return MakeKernel(spec, [box](const KernelRun& run, Stream stream) {
        return Broadcast(stream, box, In<decltype(element)>(run, 0), Out<decltype(result)>(run, 0));
      });
    });
  });
}

// make(value) for sums over all elements, of f32 or f64.
template <class Make>
KernelOr ForSummed(const KernelSpec& spec, const Make& make) {
  if (AllAre(spec, DType::kF64)) return make(double());
  return AllAre(spec, DType::kF32) ? make(float()) : NoKernel(spec);
}

KernelOr MakeTotal(const KernelSpec& spec) {
  return ForSummed(spec, [&, n = InSize(spec, 0)](auto zero) -> KernelOr {
    using T = decltype(zero);
    const auto issue = [n](const KernelRun& run, Stream stream) {
      return Total(stream, n, In<T>(run, 0), run.workspace, Out<double>(run, 0));
    };
    return MakeKernel(spec, issue, SumWorkspaceBytes(n));
  });
}

KernelOr MakeWeightedSum(const KernelSpec& spec) {
  return ForSummed(spec, [&, n = InSize(spec, 0)](auto zero) -> KernelOr {
    using T = decltype(zero);
    const auto issue = [n](const KernelRun& run, Stream stream) {
      return WeightedSum(stream, n, In<T>(run, 0), In<T>(run, 1), run.workspace,
                         Out<double>(run, 0));
    };
    return MakeKernel(spec, issue, SumWorkspaceBytes(n));
  });
}

KernelOr MakeSumSquares(const KernelSpec& spec) {
  return ForSummed(spec, [&, n = InSize(spec, 0)](auto zero) -> KernelOr {
    using T = decltype(zero);
    const auto issue = [n](const KernelRun& run, Stream stream) {
      return SumSquares(stream, n, In<T>(run, 0), run.workspace, Out<double>(run, 0));
    };
    return MakeKernel(spec, issue, SumWorkspaceBytes(n));
  });
}

KernelOr MakeStack(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF64)) return NoKernel(spec);
  return MakeKernel(spec, [](const KernelRun& run, Stream stream) {
    return Stack(stream, static_cast<int64_t>(run.inputs.size()), run.inputs.data(),
                 Out<double>(run, 0));
  });
}

}  // namespace

absl::Span<const KernelEntry> ReduceKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"broadcast", MakeBroadcast},      {"reduce_max", MakeReduceMax},
      {"reduce_sum", MakeReduceSum},     {"stack", MakeStack},
      {"sum_squares", MakeSumSquares},   {"total", MakeTotal},
      {"weighted_sum", MakeWeightedSum},
  };
  return kEntries;
}

}  // namespace mgc::cuda
