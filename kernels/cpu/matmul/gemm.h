// Matrix products in f32: C = A·B, C += A·B, optionally with a bias, for any strides, so that
// transposed operands, slices and heads need no copy.
//
// The product is our own packed kernel (the block structure of Goto and van de Geijn, "Anatomy of
// High-Performance Matrix Multiplication", 2008). docs/decisions/0020-own-products.md says why and
// with which measurements.
//
// Bits: an element is summed over k in blocks of a fixed size, ascending inside a block and over
// the blocks. It depends on nothing but its row of A, its column of B, the bias and, when
// accumulating, its old value: not on m, n, the batch, the strides, or how many threads there are.
// Any split of the output gives the same bits.
#ifndef MGC_KERNELS_CPU_MATMUL_GEMM_H_
#define MGC_KERNELS_CPU_MATMUL_GEMM_H_

#include <cstdint>

#include "kernels/parallel.h"

namespace mgc::cpu {

// Element (batch, i, j) lies at batch * `batch` + i * `row` + j * `col` elements from the start.
struct GemmStrides {
  int64_t batch = 0;
  int64_t row = 0;
  int64_t col = 1;
};

// C[batch, m, n] = A[batch, m, k] · B[batch, k, n]. Sizes may be 0; with k = 0 the product is zero.
struct GemmShape {
  int64_t batch = 1;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  GemmStrides a, b;
  GemmStrides c;            // col or row must be 1, and no two elements may coincide
  bool accumulate = false;  // C += A·B
};

// Strides of a dense row-major [batch, rows, cols], and of the transpose of such a [batch, cols,
// rows].
GemmStrides DenseStrides(int64_t rows, int64_t cols);
GemmStrides TransposedStrides(int64_t rows, int64_t cols);

// Floats of workspace that Gemm needs with `width` threads; the same or less for smaller m, n, k or
// width.
int64_t GemmWorkspaceFloats(int64_t m, int64_t n, int64_t k, int width);

// `bias` is null or [n], added to every row. `workspace` holds GemmWorkspaceFloats(...), is
// overwritten, and need not be aligned.
void Gemm(Parallel& parallel, const GemmShape& shape, const float* a, const float* b,
          const float* bias, float* c, float* workspace);

}  // namespace mgc::cpu

#endif  // MGC_KERNELS_CPU_MATMUL_GEMM_H_
