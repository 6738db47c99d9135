#include "kernels/shared/einsum.h"

#include <algorithm>

#include "kernels/spec.h"

namespace mgc {
namespace {

// Appends `inner`, merged into the last loop where its steps continue it in every tensor.
void Append(std::vector<EinsumLoop>* loops, const EinsumLoop& inner) {
  if (inner.size == 1) return;
  if (!loops->empty()) {
    EinsumLoop& outer = loops->back();
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

// Takes the largest loop of a role; one of size 1 if there is none.
EinsumLoop TakeLargest(std::vector<EinsumLoop>* loops) {
  const auto by_size = [](const EinsumLoop& a, const EinsumLoop& b) { return a.size < b.size; };
  const auto largest = std::max_element(loops->begin(), loops->end(), by_size);
  if (largest == loops->end()) return {1, {0, 0, 0}};
  const EinsumLoop taken = *largest;
  loops->erase(largest);
  return taken;
}

}  // namespace

EinsumLoops LoopsOf(const KernelSpec& spec, size_t first) {
  const size_t n = spec.rule.factors.size();
  std::vector<EinsumLoop> all(n);
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
  EinsumLoops loops;
  // Kept factors in the order of the result, summed ones in that of operand a.
  for (const DimFactors& dim : spec.rule.results[0]) {
    const size_t f = static_cast<size_t>(dim[0]);
    const EinsumLoops::Role role = has[0][f] && has[1][f] ? EinsumLoops::kBatch
                                   : has[0][f]            ? EinsumLoops::kRows
                                                          : EinsumLoops::kCols;
    Append(&loops.of[role], all[f]);
  }
  for (const DimFactors& dim : spec.rule.operands[first]) {
    const size_t f = static_cast<size_t>(dim[0]);
    if (!has[2][f]) Append(&loops.of[EinsumLoops::kSummed], all[f]);
  }
  return loops;
}

Product ProductOf(const KernelSpec& spec, size_t first, bool accumulate) {
  EinsumLoops loops = LoopsOf(spec, first);
  const EinsumLoop rows = TakeLargest(&loops.of[EinsumLoops::kRows]);
  EinsumLoop cols = TakeLargest(&loops.of[EinsumLoops::kCols]);
  const EinsumLoop summed = TakeLargest(&loops.of[EinsumLoops::kSummed]);
  const EinsumLoop batch = TakeLargest(&loops.of[EinsumLoops::kBatch]);
  Product p;
  for (EinsumLoops::Role role : {EinsumLoops::kBatch, EinsumLoops::kRows, EinsumLoops::kCols}) {
    p.around.insert(p.around.end(), loops.of[role].begin(), loops.of[role].end());
  }
  if (cols.size > 1 && cols.stride[2] != 1 && rows.size > 1 && rows.stride[2] != 1) {
    p.around.push_back(cols);  // no dim of the result is dense: column by column
    cols = {1, {0, 0, 0}};
  }
  p.first_summed = p.around.size();
  p.around.insert(p.around.end(), loops.of[EinsumLoops::kSummed].begin(),
                  loops.of[EinsumLoops::kSummed].end());
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

bool IsAlongColumns(const Product& p, int64_t bias) {
  return !p.SumsAround() && p.shape.n == bias && p.shape.c.col == 1;
}

}  // namespace mgc
