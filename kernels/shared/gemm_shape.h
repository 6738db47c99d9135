// A product of two matrices, or a batch of them, as backends are given it: sizes and where elements
// lie.

#ifndef MGC_KERNELS_SHARED_GEMM_SHAPE_H_
#define MGC_KERNELS_SHARED_GEMM_SHAPE_H_

#include <cstdint>

namespace mgc {

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
  GemmStrides c;            // col must be 1, or without a bias row; no two elements may coincide
  bool accumulate = false;  // C += A·B; C is f32
};

}  // namespace mgc

#endif  // MGC_KERNELS_SHARED_GEMM_SHAPE_H_
