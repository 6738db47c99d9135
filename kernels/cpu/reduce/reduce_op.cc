// Reductions and broadcast. The common forms (one run of neighbouring dims) are fast; any other set
// of dims is reduced element by element of the result.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/cpu/adapt.h"
#include "kernels/cpu/reduce/reduce.h"
#include "kernels/shared/reduce_spec.h"

namespace mgc::cpu {
namespace {

// Numbers as the loops below take and give them.
double DoubleOf(double x) { return x; }
double DoubleOf(float x) { return x; }
double DoubleOf(Bfloat16 x) { return ToFloat(x); }
double DoubleOf(Float16 x) { return ToFloat(x); }
void PutDouble(double x, double* y) { *y = x; }
void PutDouble(double x, float* y) { *y = static_cast<float>(x); }
void PutDouble(double x, Bfloat16* y) { *y = ToBfloat16(static_cast<float>(x)); }
void PutDouble(double x, Float16* y) { *y = ToFloat16(static_cast<float>(x)); }

template <class From, class To>
void Convert(From x, To* y) {
  if constexpr (std::is_same_v<From, To>) {
    *y = x;
  } else {
    PutDouble(DoubleOf(x), y);
  }
}

template <class From, class To>
KernelOr MakeAnySum(const KernelSpec& spec) {
  const Reduction r = ReductionOf(spec);
  return MakeKernel(spec, [r](const KernelRun& run, Parallel& parallel) {
    const From* x = In<From>(run, 0);
    parallel.For(r.kept.size(), 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t base = r.kept.At(i);
        double sum = 0;
        for (int64_t j = 0; j < r.reduced.size(); ++j) sum += DoubleOf(x[base + r.reduced.At(j)]);
        PutDouble(sum, Out<To>(run, 0) + i);
      }
    });
  });
}

// Sums of f32, of elements of T.
template <class T>
KernelOr MakeSumOf(const KernelSpec& spec) {
  int64_t outer, reduced, inner;
  if (!IsOneRun(spec, &outer, &reduced, &inner)) return MakeAnySum<T, float>(spec);
  return MakeKernel(spec, [=](const KernelRun& run, Parallel& parallel) {
    SumMiddle(parallel, outer, reduced, inner, In<T>(run, 0), false, Y(run, 0));
  });
}

KernelOr MakeReduceSum(const KernelSpec& spec) {
  const DType from = spec.input_types[0].dtype, to = spec.output_types[0].dtype;
  if (from == DType::kF64 && to == from) return MakeAnySum<double, double>(spec);
  if (from == DType::kF32 && to == from) return MakeSumOf<float>(spec);
  if (from == DType::kBF16 && to == DType::kF32) return MakeSumOf<Bfloat16>(spec);
  if (from == DType::kBF16 && to == from) return MakeAnySum<Bfloat16, Bfloat16>(spec);
  if (from == DType::kF16 && to == DType::kF32) return MakeSumOf<Float16>(spec);
  if (from == DType::kF16 && to == from) return MakeAnySum<Float16, Float16>(spec);
  return NoKernel(spec);
}

template <class From, class To>
KernelOr MakeMaxOf(const KernelSpec& spec) {
  const std::vector<int64_t>& shape = spec.input_shapes[0];
  const Reduction r = ReductionOf(spec);
  if (ReducesLastDim(spec)) {
    const int64_t rows = LeadingDims(shape), cols = LastDim(shape);
    return MakeKernel(spec,
                      [=, valid = r.reduced.extents[0]](const KernelRun& run, Parallel& parallel) {
                        RowMax(parallel, rows, cols, valid, In<From>(run, 0), Out<To>(run, 0));
                      });
  }
  return MakeKernel(spec, [r](const KernelRun& run, Parallel& parallel) {
    const From* x = In<From>(run, 0);
    parallel.For(r.kept.size(), 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t base = r.kept.At(i);
        double most = -std::numeric_limits<double>::infinity();
        for (int64_t j = 0; j < r.reduced.size(); ++j) {
          most = std::max(most, DoubleOf(x[base + r.reduced.At(j)]));
        }
        PutDouble(most, Out<To>(run, 0) + i);
      }
    });
  });
}

// Maxima of elements of T, as they are or in f32.
template <class T>
KernelOr MakeMaxFrom(const KernelSpec& spec) {
  const DType to = spec.output_types[0].dtype;
  if (to == spec.input_types[0].dtype) return MakeMaxOf<T, T>(spec);
  return to == DType::kF32 ? MakeMaxOf<T, float>(spec) : NoKernel(spec);
}

KernelOr MakeReduceMax(const KernelSpec& spec) {
  switch (spec.input_types[0].dtype) {
    case DType::kF32:
      return MakeMaxFrom<float>(spec);
    case DType::kBF16:
      return MakeMaxFrom<Bfloat16>(spec);
    case DType::kF16:
      return MakeMaxFrom<Float16>(spec);
    default:
      return NoKernel(spec);
  }
}

template <class From, class To>
KernelOr MakeBroadcastOf(const KernelSpec& spec) {
  const std::vector<int64_t>& shape = spec.output_shapes[0];
  Box box = BroadcastBox(spec);
  const int64_t cols = LastDim(shape), step = shape.empty() ? 0 : box.strides.back();
  if (!shape.empty()) {
    box.extents.pop_back();
    box.strides.pop_back();
  }
  return MakeKernel(spec, [=, rows = box.size()](const KernelRun& run, Parallel& parallel) {
    const int64_t grain = std::max<int64_t>(16384 / std::max<int64_t>(cols, 1), 1);
    parallel.For(rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const From* from = In<From>(run, 0) + box.At(r);
        To* to = Out<To>(run, 0) + r * cols;
        for (int64_t c = 0; c < cols; ++c) Convert(from[c * step], to + c);
      }
    });
  });
}

template <class From>
KernelOr MakeBroadcastFrom(const KernelSpec& spec) {
  switch (spec.output_types[0].dtype) {
    case DType::kF32:
      return MakeBroadcastOf<From, float>(spec);
    case DType::kF64:
      return MakeBroadcastOf<From, double>(spec);
    case DType::kBF16:
      return MakeBroadcastOf<From, Bfloat16>(spec);
    case DType::kF16:
      return MakeBroadcastOf<From, Float16>(spec);
    case DType::kI64:
    case DType::kI8:
      break;
  }
  return NoKernel(spec);
}

KernelOr MakeBroadcast(const KernelSpec& spec) {
  switch (spec.input_types[0].dtype) {
    case DType::kF32:
      return MakeBroadcastFrom<float>(spec);
    case DType::kF64:
      return MakeBroadcastFrom<double>(spec);
    case DType::kBF16:
      return MakeBroadcastFrom<Bfloat16>(spec);
    case DType::kF16:
      return MakeBroadcastFrom<Float16>(spec);
    case DType::kI64:
    case DType::kI8:
      break;
  }
  return NoKernel(spec);
}

WorkspaceFunction SumWorkspace(int64_t n) {
  return [n](int) { return static_cast<int64_t>(sizeof(double)) * SumWorkspaceDoubles(n); };
}

double* Doubles(const KernelRun& run) { return static_cast<double*>(run.workspace); }

// Sums of f64: norms of a few parameters.
template <class Term>
KernelOr MakeDoubleSum(const KernelSpec& spec, Term term) {
  return MakeKernel(spec, [=, n = InSize(spec, 0)](const KernelRun& run, Parallel&) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += term(run, i);
    *Out<double>(run, 0) = sum;
  });
}

KernelOr MakeTotal(const KernelSpec& spec) {
  const int64_t n = InSize(spec, 0);
  if (AllAre(spec, DType::kF64)) {
    return MakeDoubleSum(spec,
                         [](const KernelRun& run, int64_t i) { return In<double>(run, 0)[i]; });
  }
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  return MakeKernel(
      spec,
      [n](const KernelRun& run, Parallel& parallel) {
        *Out<double>(run, 0) = Sum(parallel, n, X(run, 0), Doubles(run));
      },
      SumWorkspace(n));
}

KernelOr MakeWeightedSum(const KernelSpec& spec) {
  const int64_t n = InSize(spec, 0);
  if (AllAre(spec, DType::kF64)) {
    return MakeDoubleSum(spec, [](const KernelRun& run, int64_t i) {
      return In<double>(run, 0)[i] * In<double>(run, 1)[i];
    });
  }
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  return MakeKernel(
      spec,
      [n](const KernelRun& run, Parallel& parallel) {
        *Out<double>(run, 0) = SumOfProducts(parallel, n, X(run, 0), X(run, 1), Doubles(run));
      },
      SumWorkspace(n));
}

KernelOr MakeSumSquares(const KernelSpec& spec) {
  const int64_t n = InSize(spec, 0);
  if (AllAre(spec, DType::kF64)) {
    return MakeDoubleSum(spec, [](const KernelRun& run, int64_t i) {
      return In<double>(run, 0)[i] * In<double>(run, 0)[i];
    });
  }
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  return MakeKernel(
      spec,
      [n](const KernelRun& run, Parallel& parallel) {
        *Out<double>(run, 0) = SumOfSquares(parallel, n, X(run, 0), Doubles(run));
      },
      SumWorkspace(n));
}

KernelOr MakeStack(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF64)) return NoKernel(spec);
  return MakeKernel(spec, [](const KernelRun& run, Parallel&) {
    for (size_t i = 0; i < run.inputs.size(); ++i) {
      Out<double>(run, 0)[i] = *In<double>(run, static_cast<int>(i));
    }
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

}  // namespace mgc::cpu
