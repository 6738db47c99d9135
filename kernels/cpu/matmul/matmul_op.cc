// Einsums of two operands as matrix products; what does not merge into one is looped over.
#include <cstdint>
#include <memory>
#include <type_traits>

#include "kernels/cpu/adapt.h"
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/simd/elements.h"
#include "kernels/shared/einsum.h"

namespace mgc::cpu {
namespace {

int64_t FloatBytes(int64_t floats) { return static_cast<int64_t>(sizeof(float)) * floats; }

// Of a product with results of C.
template <class C>
int64_t ProductWorkspaceFloats(const GemmShape& s, int width) {
  return (!std::is_same_v<C, float> ? NarrowGemmWorkspaceFloats : GemmWorkspaceFloats)(s.m, s.n,
                                                                                       s.k, width);
}

// Runs the loops from `level` on around the product. `bias` is null, or added by every product.
template <class T, class C>
void RunLoops(Parallel& parallel, const Product& p, size_t level, bool later_sum, const T* a,
              const T* b, const float* bias, C* c, float* workspace) {
  if (level == p.around.size()) {
    GemmShape shape = p.shape;
    shape.accumulate = shape.accumulate || later_sum;
    Gemm(parallel, shape, a, b, bias, c, workspace);
    return;
  }
  const EinsumLoop& loop = p.around[level];
  for (int64_t i = 0; i < loop.size; ++i) {
    RunLoops(parallel, p, level + 1, later_sum || (level >= p.first_summed && i > 0),
             a + i * loop.stride[0], b + i * loop.stride[1], bias, c + i * loop.stride[2],
             workspace);
  }
}

// Products of T with results of C, f32 or T, result 0 of operands `first` and the next.
template <class T, class C>
std::unique_ptr<Kernel> MakeProduct(const KernelSpec& spec, const Product& p, int first) {
  const GemmShape s = p.shape;
  return MakeKernel(
      spec,
      [p, first](const KernelRun& run, Parallel& parallel) {
        if (p.shape.accumulate) {
          CopyBytes(parallel, p.result_bytes, In<char>(run, 0), Out<char>(run, 0));
        }
        RunLoops(parallel, p, 0, false, In<T>(run, first), In<T>(run, first + 1), nullptr,
                 Out<C>(run, 0), Scratch(run));
      },
      [s](int width) { return FloatBytes(ProductWorkspaceFloats<C>(s, width)); });
}

// Products of T, which is narrower than f32.
template <class T>
KernelOr MakeNarrowProduct(const KernelSpec& spec, const Product& p) {
  const DType from = spec.input_types[0].dtype, to = spec.output_types[0].dtype;
  if (to == DType::kF32) return MakeProduct<T, float>(spec, p, 0);
  // A sum over several loops would be rounded after each.
  if (to == from && !p.SumsAround()) return MakeProduct<T, T>(spec, p, 0);
  return NoKernel(spec);
}

KernelOr MakeMatmul(const KernelSpec& spec) {
  const DType from = spec.input_types[0].dtype, to = spec.output_types[0].dtype;
  const Product p = ProductOf(spec, 0, false);
  if (from == DType::kF32 && to == from) return MakeProduct<float, float>(spec, p, 0);
  if (from == DType::kBF16) return MakeNarrowProduct<Bfloat16>(spec, p);
  if (from == DType::kF16) return MakeNarrowProduct<Float16>(spec, p);
  return NoKernel(spec);
}

// The bias, operand 2, is added where a tile of C leaves the registers, or in a pass of its own.
template <class T>
std::unique_ptr<Kernel> MakeProductWithBias(const KernelSpec& spec, const Product& p) {
  const GemmShape s = p.shape;
  const int64_t size = OutSize(spec, 0), bias = InSize(spec, 2);
  const bool at_once = IsAlongColumns(p, bias);
  const auto run = [=](const KernelRun& run, Parallel& parallel) {
    const T* added = In<T>(run, 2);
    float* wide = Scratch(run);
    T* c = Out<T>(run, 0);
    for (int64_t i = 0; at_once && i < bias; ++i) wide[i] = FloatOf(added[i]);
    RunLoops(parallel, p, 0, false, In<T>(run, 0), In<T>(run, 1), at_once ? wide : nullptr, c,
             wide + bias);
    const Addend<T> terms[] = {{c, size}, {added, bias}};
    if (!at_once) Add(parallel, size, absl::MakeConstSpan(terms), c);
  };
  return MakeKernel(spec, run, [s, bias](int width) {
    return FloatBytes(bias + ProductWorkspaceFloats<T>(s, width));
  });
}

KernelOr MakeMatmulBias(const KernelSpec& spec) {
  const Product p = ProductOf(spec, 0, false);
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    const bool rounds_often = !std::is_same_v<T, float> && p.SumsAround();
    if (rounds_often) return NoKernel(spec);
    return MakeProductWithBias<T>(spec, p);
  });
}

KernelOr MakeMatmulAccumulate(const KernelSpec& spec) {
  const DType from = spec.input_types[1].dtype;
  if (spec.output_types[0].dtype != DType::kF32) return NoKernel(spec);
  const Product p = ProductOf(spec, 1, true);
  if (from == DType::kF32) return MakeProduct<float, float>(spec, p, 1);
  if (from == DType::kBF16) return MakeProduct<Bfloat16, float>(spec, p, 1);
  if (from == DType::kF16) return MakeProduct<Float16, float>(spec, p, 1);
  return NoKernel(spec);
}

// Runs the loops from `level` on around the product; loops over columns move along the scales.
template <class T, class C>
void RunScaledLoops(Parallel& parallel, const Product& p, size_t level, bool later_sum, const T* a,
                    const int8_t* b, const float* scale, C* c, float* workspace) {
  if (level == p.around.size()) {
    GemmShape shape = p.shape;
    shape.accumulate = later_sum;
    ScaledGemm(parallel, shape, a, b, scale, c, workspace);
    return;
  }
  const EinsumLoop& loop = p.around[level];
  const bool is_of_columns = level < p.first_summed && loop.stride[0] == 0;
  for (int64_t i = 0; i < loop.size; ++i) {
    const bool moves = scale != nullptr && is_of_columns;
    RunScaledLoops(parallel, p, level + 1, later_sum || (level >= p.first_summed && i > 0),
                   a + i * loop.stride[0], b + i * loop.stride[1],
                   moves ? scale + i * loop.stride[2] : scale, c + i * loop.stride[2], workspace);
  }
}

// Scales, operand 2, multiply where a tile of C leaves the registers. Where sums are not complete
// there, or C lies by columns, a pass of its own does that, of f32 alone: it would be the second
// time that others are rounded.
template <class T, class C>
KernelOr MakeScaledProduct(const KernelSpec& spec, const Product& p) {
  const GemmShape s = p.shape;
  const int64_t size = OutSize(spec, 0), scales = InSize(spec, 2);
  const bool at_once = !p.SumsAround() && s.c.col == 1;
  if (!at_once && !std::is_same_v<C, float>) return NoKernel(spec);
  const auto run = [=](const KernelRun& run, Parallel& parallel) {
    // A single scale is one for each column as well.
    const float* scale = In<float>(run, 2);
    C* c = Out<C>(run, 0);
    RunScaledLoops(parallel, p, 0, false, In<T>(run, 0), In<int8_t>(run, 1),
                   at_once ? scale : nullptr, c, Scratch(run));
    if constexpr (std::is_same_v<C, float>) {
      for (int64_t i = 0; !at_once && i < size; ++i) c[i] *= scale[i % scales];
    }
  };
  return MakeKernel(spec, run,
                    [s](int width) { return FloatBytes(ProductWorkspaceFloats<C>(s, width)); });
}

KernelOr MakeScaledMatmul(const KernelSpec& spec) {
  const DType from = spec.input_types[0].dtype, to = spec.output_types[0].dtype;
  const Product p = ProductOf(spec, 0, false);
  const bool is_wide = to == DType::kF32;
  if (from == DType::kF32) return MakeScaledProduct<float, float>(spec, p);
  if (from == DType::kBF16 && is_wide) return MakeScaledProduct<Bfloat16, float>(spec, p);
  if (from == DType::kBF16) return MakeScaledProduct<Bfloat16, Bfloat16>(spec, p);
  if (from == DType::kF16 && is_wide) return MakeScaledProduct<Float16, float>(spec, p);
  if (from == DType::kF16) return MakeScaledProduct<Float16, Float16>(spec, p);
  return NoKernel(spec);
}

}  // namespace

absl::Span<const KernelEntry> MatmulKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"matmul", MakeMatmul},
      {"matmul_accumulate", MakeMatmulAccumulate},
      {"matmul_bias", MakeMatmulBias},
      {"scaled_matmul", MakeScaledMatmul},
  };
  return kEntries;
}

}  // namespace mgc::cpu
