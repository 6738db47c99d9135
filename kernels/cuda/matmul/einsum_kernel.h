// Einsums of two operands of any strides, issued to a stream: what cuBLASLt does not do.

#ifndef MGC_KERNELS_CUDA_MATMUL_EINSUM_KERNEL_H_
#define MGC_KERNELS_CUDA_MATMUL_EINSUM_KERNEL_H_

#include <cstdint>

#include "kernels/cuda/launch_shape.h"

namespace mgc::cuda {

// Nested loops, outer to inner, with their strides in a, b and c in elements. An index counts all
// their steps.
struct LoopNest {
  static constexpr int kMost = 6;

  int count = 0;
  int64_t steps = 1;  // of all
  int64_t size[kMost] = {};
  int64_t stride[3][kMost] = {};
};

// c[batch, row, col] = sum of a[batch, row, k] · b[batch, k, col] over `summed`. Sizes may be 0.
struct EinsumNests {
  LoopNest batch, rows, cols, summed;
};

// What is added to the sums: null is nothing; the element of place i in c gets at[i % size]. Before
// that it is multiplied by scale[i % scales], unless that is null.
template <class C>
struct Added {
  const C* at = nullptr;
  int64_t size = 1;
  const float* scale = nullptr;
  int64_t scales = 1;
};

// Blocks of threads for `nests`.
LaunchShape EinsumShape(const EinsumNests& nests);

// A: float, Bfloat16 or Float16; B: A or int8_t; C: A or float. Products and sums are f32: blocks
// of a fixed number of k, ascending in each and over them, then what `added` says, rounded once. An
// element's bits depend on its row of a and its column of b alone. `added` may be c where its size
// is that of c.
template <class A, class B, class C>
int Einsum(Stream stream, const EinsumNests& nests, const A* a, const B* b, Added<C> added, C* c);

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_MATMUL_EINSUM_KERNEL_H_
