// Einsums of two operands as matrix products: the factors of each role (rows, columns, summed,
// batch) are merged where they lie together in memory, and what does not merge is looped over.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "kernels/cpu/adapt.h"
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/simd/elements.h"

namespace mgc::cpu {
namespace {

// One loop of the einsum: its size and its strides in a, b and c (0 where it does not occur).
struct Loop {
  int64_t size;
  int64_t stride[3];
};

enum Role { kRows, kCols, kSummed, kBatch, kRoles };

// All loops of a product by role, outer to inner, neighbours merged.
struct Loops {
  std::vector<Loop> of[kRoles];
};

// Appends `inner`, merged into the last loop where its steps continue it in every tensor.
void Append(std::vector<Loop>* loops, const Loop& inner) {
  if (inner.size == 1) return;
  if (!loops->empty()) {
    Loop& outer = loops->back();
    bool continues = true;
    for (int t = 0; t < 3; ++t) {
      continues = continues && outer.stride[t] == inner.size * inner.stride[t];
    }
    if (continues) {
      outer = {outer.size * inner.size, {inner.stride[0], inner.stride[1], inner.stride[2]}};
      return;
    }
  }
  loops->push_back(inner);
}

// `first` is the place of operand a.
Loops LoopsOf(const KernelSpec& spec, size_t first) {
  const size_t n = spec.rule.factors.size();
  std::vector<Loop> all(n);
  std::vector<std::vector<bool>> has(3, std::vector<bool>(n, false));
  for (size_t t = 0; t < 3; ++t) {
    const TensorFactors& dims = t < 2 ? spec.rule.operands[first + t] : spec.rule.results[0];
    const std::vector<int64_t>& shape =
        t < 2 ? spec.input_shapes[first + t] : spec.output_shapes[0];
    const std::vector<int64_t> strides = RowMajorStrides(shape);
    for (size_t d = 0; d < dims.size(); ++d) {
      const size_t f = static_cast<size_t>(dims[d][0]);
      all[f].size = shape[d];
      all[f].stride[t] = strides[d];
      has[t][f] = true;
    }
  }
  Loops loops;
  // Kept factors in the order of the result, summed ones in that of operand a.
  for (const DimFactors& dim : spec.rule.results[0]) {
    const size_t f = static_cast<size_t>(dim[0]);
    const Role role = has[0][f] && has[1][f] ? kBatch : has[0][f] ? kRows : kCols;
    Append(&loops.of[role], all[f]);
  }
  for (const DimFactors& dim : spec.rule.operands[first]) {
    const size_t f = static_cast<size_t>(dim[0]);
    if (!has[2][f]) Append(&loops.of[kSummed], all[f]);
  }
  return loops;
}

// Takes the largest loop of a role; one of size 1 if there is none.
Loop TakeLargest(std::vector<Loop>* loops) {
  const auto by_size = [](const Loop& a, const Loop& b) { return a.size < b.size; };
  const auto largest = std::max_element(loops->begin(), loops->end(), by_size);
  if (largest == loops->end()) return {1, {0, 0, 0}};
  const Loop taken = *largest;
  loops->erase(largest);
  return taken;
}

// A product and the loops around it, those of summed factors last.
struct Product {
  GemmShape shape;
  std::vector<Loop> around;
  size_t first_summed = 0;  // of `around`
  int64_t result_bytes = 0;
};

Product ProductOf(const KernelSpec& spec, size_t first, bool accumulate) {
  Loops loops = LoopsOf(spec, first);
  const Loop rows = TakeLargest(&loops.of[kRows]);
  Loop cols = TakeLargest(&loops.of[kCols]);
  const Loop summed = TakeLargest(&loops.of[kSummed]);
  const Loop batch = TakeLargest(&loops.of[kBatch]);
  Product p;
  for (Role role : {kBatch, kRows, kCols}) {
    p.around.insert(p.around.end(), loops.of[role].begin(), loops.of[role].end());
  }
  if (cols.size > 1 && cols.stride[2] != 1 && rows.size > 1 && rows.stride[2] != 1) {
    p.around.push_back(cols);  // no dim of the result is dense: column by column
    cols = {1, {0, 0, 0}};
  }
  p.first_summed = p.around.size();
  p.around.insert(p.around.end(), loops.of[kSummed].begin(), loops.of[kSummed].end());
  GemmShape& s = p.shape;
  s.batch = batch.size;
  s.m = rows.size;
  s.n = cols.size;
  s.k = summed.size;
  s.a = {batch.stride[0], rows.stride[0], summed.stride[0]};
  s.b = {batch.stride[1], summed.stride[1], cols.stride[1]};
  s.c = {batch.stride[2], rows.stride[2], cols.size == 1 ? 1 : cols.stride[2]};
  if (s.m == 1 && s.c.col != 1) s.c.row = 1;
  s.accumulate = accumulate;
  p.result_bytes = OutSize(spec, 0) * SizeOf(spec.output_types[0].dtype);
  return p;
}

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
  const Loop& loop = p.around[level];
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
  if (to == from && p.first_summed == p.around.size()) return MakeProduct<T, T>(spec, p, 0);
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

// Whether the bias lies along the columns of every product around which the loops run.
bool IsAlongColumns(const Product& p, int64_t bias) {
  return p.first_summed == p.around.size() && p.shape.n == bias && p.shape.c.col == 1;
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
    const bool rounds_often = !std::is_same_v<T, float> && p.first_summed != p.around.size();
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

}  // namespace

absl::Span<const KernelEntry> MatmulKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"matmul", MakeMatmul},
      {"matmul_accumulate", MakeMatmulAccumulate},
      {"matmul_bias", MakeMatmulBias},
  };
  return kEntries;
}

}  // namespace mgc::cpu
