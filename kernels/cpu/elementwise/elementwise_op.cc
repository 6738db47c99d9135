// Elementwise arithmetic. Scalars and short vectors of f64 (norms,
// rates) have plain loops.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "kernels/cpu/adapt.h"
#include "kernels/cpu/elementwise/elementwise.h"

namespace mgc::cpu {
namespace {

constexpr int kMostAddends = 16;

// y[i] = function(a[i], b[i]), operand b repeating when it is shorter.
template <class Function>
std::unique_ptr<Kernel> DoubleKernel(const KernelSpec& spec, Function function) {
  const int64_t n = OutSize(spec, 0);
  const int64_t b_size = spec.input_shapes.size() > 1 ? InSize(spec, 1) : 1;
  const bool binary = spec.input_shapes.size() > 1;
  return MakeKernel(spec, [=](const KernelRun& run, Parallel&) {
    const double* a = In<double>(run, 0);
    const double* b = binary ? In<double>(run, 1) : a;
    double* y = Out<double>(run, 0);
    for (int64_t i = 0; i < n; ++i) y[i] = function(a[i], binary ? b[i % b_size] : 0.0);
  });
}

KernelOr MakeAdd(const KernelSpec& spec) {
  const size_t count = spec.input_shapes.size();
  if (AllAre(spec, DType::kF64)) {
    return MakeKernel(spec, [spec, n = OutSize(spec, 0)](const KernelRun& run, Parallel&) {
      for (int64_t i = 0; i < n; ++i) {
        double sum = In<double>(run, 0)[i];
        for (size_t k = 1; k < run.inputs.size(); ++k) {
          const int at = static_cast<int>(k);
          sum += In<double>(run, at)[i % InSize(spec, at)];
        }
        Out<double>(run, 0)[i] = sum;
      }
    });
  }
  if (count > kMostAddends) return NoKernel(spec);
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    std::array<Addend<T>, kMostAddends> addends = {};
    for (size_t k = 0; k < count; ++k) addends[k].size = InSize(spec, static_cast<int>(k));
    return MakeKernel(spec, [=, n = OutSize(spec, 0)](const KernelRun& run, Parallel& parallel) {
      std::array<Addend<T>, kMostAddends> x = addends;
      for (size_t k = 0; k < count; ++k) x[k].data = In<T>(run, static_cast<int>(k));
      Add(parallel, n, absl::MakeConstSpan(x).first(count), Out<T>(run, 0));
    });
  });
}

KernelOr MakeSub(const KernelSpec& spec) {
  if (AllAre(spec, DType::kF64)) {
    return DoubleKernel(spec, [](double a, double b) { return a - b; });
  }
  return ForElements(
      spec, [&](auto zero) { return MakeBinary<decltype(zero)>(spec, Subtract<decltype(zero)>); });
}

KernelOr MakeMul(const KernelSpec& spec) {
  if (AllAre(spec, DType::kF64)) {
    return DoubleKernel(spec, [](double a, double b) { return a * b; });
  }
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    const int64_t n = OutSize(spec, 0);
    if (spec.input_types[1].dtype == DType::kF64) {
      return MakeKernel(spec, [n](const KernelRun& run, Parallel& parallel) {
        Scale(parallel, n, static_cast<float>(*In<double>(run, 1)), In<T>(run, 0), Out<T>(run, 0));
      });
    }
    return MakeKernel(spec, [n, b = InSize(spec, 1)](const KernelRun& run, Parallel& parallel) {
      Multiply(parallel, n, In<T>(run, 0), b, In<T>(run, 1), Out<T>(run, 0));
    });
  });
}

KernelOr MakeScale(const KernelSpec& spec) {
  const double value = spec.attrs.Real("value");
  if (AllAre(spec, DType::kF64)) {
    return DoubleKernel(spec, [value](double a, double) { return value * a; });
  }
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    const int64_t n = OutSize(spec, 0);
    return MakeKernel(spec, [n, value](const KernelRun& run, Parallel& parallel) {
      Scale(parallel, n, static_cast<float>(value), In<T>(run, 0), Out<T>(run, 0));
    });
  });
}

KernelOr MakeInv(const KernelSpec& spec) {
  if (AllAre(spec, DType::kF64)) {
    return DoubleKernel(spec, [](double a, double) { return 1 / a; });
  }
  return AllAre(spec, DType::kF32) ? MakeUnary<float>(spec, Invert) : NoKernel(spec);
}

KernelOr MakeSqrt(const KernelSpec& spec) {
  if (AllAre(spec, DType::kF64)) {
    return DoubleKernel(spec, [](double a, double) { return std::sqrt(a); });
  }
  return AllAre(spec, DType::kF32) ? MakeUnary<float>(spec, SquareRoot) : NoKernel(spec);
}

KernelOr MakeClipScale(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF64)) return NoKernel(spec);
  return DoubleKernel(spec,
                      [](double norm, double max) { return std::min(1.0, max / (norm + 1e-6)); });
}

}  // namespace

absl::Span<const KernelEntry> ElementwiseKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"add", MakeAdd}, {"clip_scale", MakeClipScale}, {"inv", MakeInv},
      {"mul", MakeMul}, {"scale", MakeScale},          {"sqrt", MakeSqrt},
      {"sub", MakeSub},
  };
  return kEntries;
}

}  // namespace mgc::cpu
