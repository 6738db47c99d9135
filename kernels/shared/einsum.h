// Einsums of two operands as loops and as matrix products: the factors of each role (rows, columns,
// summed, batch) are merged where they lie together in memory.

#ifndef MGC_KERNELS_SHARED_EINSUM_H_
#define MGC_KERNELS_SHARED_EINSUM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/shared/gemm_shape.h"

namespace mgc {

// One loop: its size and its strides in a, b and c, in elements (0 where it does not occur).
struct EinsumLoop {
  int64_t size;
  int64_t stride[3];
};

// All loops of a product by role, outer to inner, neighbours merged, none of size 1.
struct EinsumLoops {
  // Of a factor: in a and c, in b and c, in a and b, in all three.
  enum Role { kRows, kCols, kSummed, kBatch, kRoles };

  std::vector<EinsumLoop> of[kRoles];
};

// Of a use of an op whose operands `first` and the next are multiplied to result 0.
EinsumLoops LoopsOf(const KernelSpec& spec, size_t first);

// A matrix product and the loops around it, those of summed factors last. The largest loop of each
// role is in the product.
struct Product {
  GemmShape shape;
  std::vector<EinsumLoop> around;
  size_t first_summed = 0;  // of `around`
  int64_t result_bytes = 0;

  bool SumsAround() const { return first_summed < around.size(); }
};

Product ProductOf(const KernelSpec& spec, size_t first, bool accumulate);

// Whether a bias of this size lies along the columns of every product around which the loops run.
bool IsAlongColumns(const Product& product, int64_t bias);

}  // namespace mgc

#endif  // MGC_KERNELS_SHARED_EINSUM_H_
