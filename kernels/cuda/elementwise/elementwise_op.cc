// Elementwise arithmetic.
#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/adapt.h"
#include "kernels/cuda/elementwise/elementwise.h"

namespace mgc::cuda {
namespace {

// As ForElements, and of f64.
template <class Make>
KernelOr ForElementsOrDouble(const KernelSpec& spec, const Make& make) {
  return AllAre(spec, DType::kF64) ? make(double()) : ForElements(spec, make);
}

template <class T>
using UnaryLaunch = int (*)(Stream, int64_t, const T*, T*);

template <class T>
KernelOr MakeUnary(const KernelSpec& spec, UnaryLaunch<T> launch) {
  return MakeKernel(spec, [launch, n = OutSize(spec, 0)](const KernelRun& run, Stream stream) {
    return launch(stream, n, In<T>(run, 0), Out<T>(run, 0));
  });
}

KernelOr MakeAdd(const KernelSpec& spec) {
  const size_t count = spec.input_shapes.size();
  if (count > kMostAddends) return NoKernel(spec);
  return ForElementsOrDouble(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    std::array<int64_t, kMostAddends> sizes = {};
    for (size_t k = 0; k < count; ++k) sizes[k] = InSize(spec, static_cast<int>(k));
    return MakeKernel(spec, [=, n = OutSize(spec, 0)](const KernelRun& run, Stream stream) {
      std::array<const T*, kMostAddends> x = {};
      for (size_t k = 0; k < count; ++k) x[k] = In<T>(run, static_cast<int>(k));
      return Add(stream, n, static_cast<int>(count), x.data(), sizes.data(), Out<T>(run, 0));
    });
  });
}

KernelOr MakeSub(const KernelSpec& spec) {
  return ForElementsOrDouble(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [n = OutSize(spec, 0)](const KernelRun& run, Stream stream) {
      return Subtract(stream, n, In<T>(run, 0), In<T>(run, 1), Out<T>(run, 0));
    });
  });
}

KernelOr MakeMul(const KernelSpec& spec) {
  return ForElementsOrDouble(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    const int64_t n = OutSize(spec, 0);
    const bool by_scalar = spec.input_types[1].dtype == DType::kF64;
    return MakeKernel(spec, [=, b = InSize(spec, 1)](const KernelRun& run, Stream stream) {
      const T* const a = In<T>(run, 0);
      if (by_scalar && b == 1) return ScaleBy(stream, n, In<double>(run, 1), a, Out<T>(run, 0));
      return Multiply(stream, n, a, b, In<T>(run, 1), Out<T>(run, 0));
    });
  });
}

KernelOr MakeScale(const KernelSpec& spec) {
  return ForElementsOrDouble(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    const double factor = spec.attrs.Real("value");
    return MakeKernel(spec, [n = OutSize(spec, 0), factor](const KernelRun& run, Stream stream) {
      return Scale(stream, n, factor, In<T>(run, 0), Out<T>(run, 0));
    });
  });
}

KernelOr MakeInv(const KernelSpec& spec) {
  if (AllAre(spec, DType::kF64)) return MakeUnary<double>(spec, Invert);
  return AllAre(spec, DType::kF32) ? MakeUnary<float>(spec, Invert) : NoKernel(spec);
}

KernelOr MakeSqrt(const KernelSpec& spec) {
  if (AllAre(spec, DType::kF64)) return MakeUnary<double>(spec, SquareRoot);
  return AllAre(spec, DType::kF32) ? MakeUnary<float>(spec, SquareRoot) : NoKernel(spec);
}

KernelOr MakeClipScale(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF64)) return NoKernel(spec);
  return MakeKernel(spec, [n = OutSize(spec, 0)](const KernelRun& run, Stream stream) {
    return ClipScale(stream, n, In<double>(run, 0), In<double>(run, 1), Out<double>(run, 0));
  });
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

}  // namespace mgc::cuda
