// Einsums of two operands: by cuBLASLt as far as it has layouts and algorithms for them, else by
// our own kernel. Which of them is a matter of shapes, types and the GPU's kind.
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/optional.h"
#include "kernels/cuda/adapt.h"
#include "kernels/cuda/matmul/einsum_kernel.h"
#include "kernels/cuda/matmul/lt_problem.h"
#include "kernels/cuda/matmul/lt_product.h"
#include "kernels/shared/einsum.h"

namespace mgc::cuda {
namespace {

// Where the product's operands stand in the op, and what is added to it.
struct Operands {
  int first = 0;   // of the two that are multiplied
  int added = -1;  // none
};

// False: there are more loops than a nest has.
bool FillNest(const std::vector<EinsumLoop>& loops, LoopNest* nest) {
  if (loops.size() > LoopNest::kMost) return false;
  for (const EinsumLoop& loop : loops) {
    nest->size[nest->count] = loop.size;
    for (int t = 0; t < 3; ++t) nest->stride[t][nest->count] = loop.stride[t];
    nest->steps *= loop.size;
    ++nest->count;
  }
  return true;
}

bool FillNests(const EinsumLoops& loops, EinsumNests* nests) {
  return FillNest(loops.of[EinsumLoops::kBatch], &nests->batch) &&
         FillNest(loops.of[EinsumLoops::kRows], &nests->rows) &&
         FillNest(loops.of[EinsumLoops::kCols], &nests->cols) &&
         FillNest(loops.of[EinsumLoops::kSummed], &nests->summed);
}

// How cuBLASLt may add it; nothing: not at all.
absl::optional<LtAdded> AddedOf(const KernelSpec& spec, const Product& product,
                                const Operands& operands) {
  if (operands.added < 0) return LtAdded::kNothing;
  const int64_t size = InSize(spec, operands.added);
  if (size == OutSize(spec, 0)) return LtAdded::kMatrix;
  if (IsAlongColumns(product, size)) return LtAdded::kBias;
  return absl::nullopt;
}

std::shared_ptr<const LtProduct> MakeLtProduct(const KernelSpec& spec, const Operands& operands,
                                               F32Products f32) {
  const Product product = ProductOf(spec, static_cast<size_t>(operands.first), false);
  const absl::optional<LtAdded> added = AddedOf(spec, product, operands);
  if (!added.has_value()) return nullptr;
  const DType from = spec.input_types[static_cast<size_t>(operands.first)].dtype;
  absl::optional<LtProblem> problem =
      LtProblemOf(product, from, spec.output_types[0].dtype, *added);
  if (!problem.has_value()) return nullptr;
  problem->tf32 = from == DType::kF32 && f32 == F32Products::kTf32;
  return std::make_shared<LtProduct>(*problem, WorkspaceBoundOf(spec, KernelHost::kGpu));
}

// Products of T with results of C, and what is added of C too.
template <class T, class C>
KernelOr MakeProduct(const KernelSpec& spec, const Operands& operands, F32Products f32) {
  EinsumNests nests;
  if (!FillNests(LoopsOf(spec, static_cast<size_t>(operands.first)), &nests)) {
    return NoKernel(spec);
  }
  const std::shared_ptr<const LtProduct> product = MakeLtProduct(spec, operands, f32);
  const int64_t added_size = operands.added < 0 ? 1 : InSize(spec, operands.added);
  const bool swapped = product != nullptr && product->swapped();
  const auto issue = [=](const KernelRun& run, Stream stream) -> int {
    const T* const a = In<T>(run, operands.first);
    const T* const b = In<T>(run, operands.first + 1);
    const C* const added = operands.added < 0 ? nullptr : In<C>(run, operands.added);
    C* const c = Out<C>(run, 0);
    if (product != nullptr) {
      const LtChoice* choice = nullptr;
      const int error = product->Choose(&choice);
      if (error != 0) return error;
      const LtPlaces places = {swapped ? b : a, swapped ? a : b, added, c};
      if (choice->served) return product->Run(*choice, stream, places, run.workspace);
    }
    return Einsum(stream, nests, a, b, Added<C>{added, added_size}, c);
  };
  return MakeKernel(spec, issue, product == nullptr ? 0 : product->workspace_bytes());
}

// Products of T with results of T or f32.
template <class T>
KernelOr MakeWideOrNot(const KernelSpec& spec, const Operands& operands, F32Products f32) {
  const DType from = spec.input_types[static_cast<size_t>(operands.first)].dtype;
  const DType to = spec.output_types[0].dtype;
  if (to == DType::kF32) return MakeProduct<T, float>(spec, operands, f32);
  return to == from ? MakeProduct<T, T>(spec, operands, f32) : NoKernel(spec);
}

KernelOr MakeOf(const KernelSpec& spec, const Operands& operands, F32Products f32) {
  switch (spec.input_types[static_cast<size_t>(operands.first)].dtype) {
    case DType::kF32:
      return MakeWideOrNot<float>(spec, operands, f32);
    case DType::kBF16:
      return MakeWideOrNot<Bfloat16>(spec, operands, f32);
    case DType::kF16:
      return MakeWideOrNot<Float16>(spec, operands, f32);
    default:
      return NoKernel(spec);
  }
}

template <F32Products kF32>
KernelOr MakeMatmul(const KernelSpec& spec) {
  return MakeOf(spec, {0, -1}, kF32);
}

template <F32Products kF32>
KernelOr MakeMatmulBias(const KernelSpec& spec) {
  const DType dtype = spec.output_types[0].dtype;
  return AllAre(spec, dtype) ? MakeOf(spec, {0, 2}, kF32) : NoKernel(spec);
}

template <F32Products kF32>
KernelOr MakeMatmulAccumulate(const KernelSpec& spec) {
  const bool is_wide = spec.output_types[0].dtype == DType::kF32;
  return is_wide ? MakeOf(spec, {1, 0}, kF32) : NoKernel(spec);
}

// Of whole numbers on the right, which cuBLASLt has no product of with other types.
template <class T, class C>
KernelOr MakeScaledProduct(const KernelSpec& spec) {
  EinsumNests nests;
  if (!FillNests(LoopsOf(spec, 0), &nests)) return NoKernel(spec);
  const int64_t scales = InSize(spec, 2);
  return MakeKernel(spec, [=](const KernelRun& run, Stream stream) {
    const Added<C> scaled = {nullptr, 1, In<float>(run, 2), scales};
    return Einsum(stream, nests, In<T>(run, 0), In<int8_t>(run, 1), scaled, Out<C>(run, 0));
  });
}

template <class T>
KernelOr MakeScaledWideOrNot(const KernelSpec& spec) {
  const DType from = spec.input_types[0].dtype, to = spec.output_types[0].dtype;
  if (to == DType::kF32) return MakeScaledProduct<T, float>(spec);
  return to == from ? MakeScaledProduct<T, T>(spec) : NoKernel(spec);
}

KernelOr MakeScaledMatmul(const KernelSpec& spec) {
  switch (spec.input_types[0].dtype) {
    case DType::kF32:
      return MakeScaledWideOrNot<float>(spec);
    case DType::kBF16:
      return MakeScaledWideOrNot<Bfloat16>(spec);
    case DType::kF16:
      return MakeScaledWideOrNot<Float16>(spec);
    default:
      return NoKernel(spec);
  }
}

template <F32Products kF32>
constexpr KernelEntry kEntries[] = {
    {"matmul", MakeMatmul<kF32>},
    {"matmul_accumulate", MakeMatmulAccumulate<kF32>},
    {"matmul_bias", MakeMatmulBias<kF32>},
    {"scaled_matmul", MakeScaledMatmul},
};

}  // namespace

absl::Span<const KernelEntry> MatmulKernels(F32Products f32) {
  return f32 == F32Products::kTf32 ? absl::MakeConstSpan(kEntries<F32Products::kTf32>)
                                   : absl::MakeConstSpan(kEntries<F32Products::kWhole>);
}

}  // namespace mgc::cuda
