// A product as cuBLASLt is asked for it: D = A·B, of matrices whose columns lie dense.

#ifndef MGC_KERNELS_CUDA_MATMUL_LT_PROBLEM_H_
#define MGC_KERNELS_CUDA_MATMUL_LT_PROBLEM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "graph/types/tensor_type.h"
#include "kernels/shared/einsum.h"

namespace mgc::cuda {

// Of rows and columns as they lie in memory: a column is dense, the next one `ld` elements on.
struct LtMatrix {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t ld = 0;
  int64_t batch_stride = 0;  // elements
  bool transposed = false;   // before it is multiplied
  uint32_t alignment = 0;    // bytes, of every address that it is given
};

// What is added to a product before it is rounded: nothing, a matrix that lies as D does, or a
// vector along the rows of D, of the type of D.
enum class LtAdded : uint8_t { kNothing, kMatrix, kBias };

struct LtProblem {
  DType from = DType::kF32;  // of A and B
  DType to = DType::kF32;    // of D and of what is added
  bool tf32 = false;         // f32 operands may be rounded to TF32
  int64_t batch = 1;
  LtMatrix a, b, d;
  bool swapped = false;  // A is the einsum's second operand
  LtAdded added = LtAdded::kNothing;
  // Loops around the product, one call for each of their steps; from `first_summed` on each call
  // but the first adds to D.
  std::vector<EinsumLoop> around;
  size_t first_summed = 0;
};

// Fewer operations are not worth a call of their own: what a GPU does in the time of a launch.
inline constexpr double kLeastFlopsOfManyCalls = 1 << 28;

// Nothing where no layout of cuBLASLt has the product's strides, where its sums would be rounded
// more than once, or where it would be many calls of fewer than `least_flops` each.
absl::optional<LtProblem> LtProblemOf(Product product, DType from, DType to, LtAdded added,
                                      double least_flops = kLeastFlopsOfManyCalls);

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_MATMUL_LT_PROBLEM_H_
