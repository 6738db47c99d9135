#include "kernels/cuda/matmul/lt_problem.h"

#include <algorithm>

#include "kernels/spec.h"

namespace mgc::cuda {
namespace {

// Of every tensor's place on a device: that of the plan's slots.
constexpr int64_t kPlaceAlignment = 64;

// The batch of a product that has none is its largest loop around it.
void FillBatch(Product* p) {
  if (p->shape.batch > 1 || p->first_summed == 0) return;
  const auto end = p->around.begin() + static_cast<std::ptrdiff_t>(p->first_summed);
  const auto largest =
      std::max_element(p->around.begin(), end,
                       [](const EinsumLoop& x, const EinsumLoop& y) { return x.size < y.size; });
  GemmShape& s = p->shape;
  s.batch = largest->size;
  s.a.batch = largest->stride[0];
  s.b.batch = largest->stride[1];
  s.c.batch = largest->stride[2];
  p->around.erase(largest);
  --p->first_summed;
}

// The columns of M are dense, the next one `col_stride` elements on. False: they are not, or
// overlap.
bool LayOutAsIs(int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride, LtMatrix* m) {
  m->rows = rows;
  m->cols = cols;
  m->ld = cols > 1 ? col_stride : rows;
  return (rows == 1 || row_stride == 1) && m->ld >= rows;
}

// op(M) has element (i, j) of `rows` × `cols` at i * row_stride + j * col_stride. False: neither M
// nor its transpose has dense columns.
bool LayOut(int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride, LtMatrix* m) {
  const bool dense_rows = row_stride == 1 && rows > 1, dense_cols = col_stride == 1 && cols > 1;
  m->transposed = !dense_rows && (dense_cols || (rows > 1 && cols == 1));
  return m->transposed ? LayOutAsIs(cols, rows, col_stride, row_stride, m)
                       : LayOutAsIs(rows, cols, row_stride, col_stride, m);
}

// Of all addresses that steps of the loops and of the batch lead to.
uint32_t AlignmentOf(const LtProblem& problem, const LtMatrix& m, int tensor, DType dtype) {
  int64_t alignment = kPlaceAlignment;
  const auto step = [&](int64_t stride) {
    while (stride * SizeOf(dtype) % alignment != 0) alignment /= 2;
  };
  step(m.batch_stride);
  for (const EinsumLoop& loop : problem.around) step(loop.stride[tensor]);
  return static_cast<uint32_t>(alignment);
}

bool IsManySmallCalls(const Product& p, double least_flops) {
  double calls = 1;
  for (const EinsumLoop& loop : p.around) calls *= static_cast<double>(loop.size);
  const GemmShape& s = p.shape;
  const double flops = 2.0 * static_cast<double>(s.batch) * static_cast<double>(s.m) *
                       static_cast<double>(s.n) * static_cast<double>(s.k);
  return calls > 1 && flops < least_flops;
}

}  // namespace

absl::optional<LtProblem> LtProblemOf(Product p, DType from, DType to, LtAdded added,
                                      double least_flops) {
  FillBatch(&p);
  const GemmShape& s = p.shape;
  if (std::min({s.batch, s.m, s.n, s.k}) < 1 || IsManySmallCalls(p, least_flops))
    return absl::nullopt;
  const bool rounds_often = to != DType::kF32 || added == LtAdded::kBias;
  if (p.SumsAround() && rounds_often) return absl::nullopt;
  LtProblem made;
  made.from = from;
  made.to = to;
  made.batch = s.batch;
  made.added = added;
  made.around = p.around;
  made.first_summed = p.first_summed;
  // Where C has dense rows, its transpose, which has dense columns, is the product of B's and A's.
  made.swapped = s.c.col == 1;
  if (!made.swapped && (added == LtAdded::kBias || s.c.row != 1)) return absl::nullopt;
  LtMatrix& of_a = made.swapped ? made.b : made.a;
  LtMatrix& of_b = made.swapped ? made.a : made.b;
  of_a.batch_stride = s.a.batch;
  of_b.batch_stride = s.b.batch;
  made.d.batch_stride = s.c.batch;
  const bool are_laid_out = made.swapped ? LayOut(s.n, s.k, s.b.col, s.b.row, &made.a) &&
                                               LayOut(s.k, s.m, s.a.col, s.a.row, &made.b) &&
                                               LayOutAsIs(s.n, s.m, s.c.col, s.c.row, &made.d)
                                         : LayOut(s.m, s.k, s.a.row, s.a.col, &made.a) &&
                                               LayOut(s.k, s.n, s.b.row, s.b.col, &made.b) &&
                                               LayOutAsIs(s.m, s.n, s.c.row, s.c.col, &made.d);
  if (!are_laid_out) return absl::nullopt;
  of_a.alignment = AlignmentOf(made, of_a, 0, from);
  of_b.alignment = AlignmentOf(made, of_b, 1, from);
  made.d.alignment = AlignmentOf(made, made.d, 2, to);
  return made;
}

}  // namespace mgc::cuda
