// Blocks of a product, as gemm.cc hands them to the loops that are compiled for every instruction
// set.
#ifndef MGC_KERNELS_CPU_MATMUL_PACKED_BLOCK_H_
#define MGC_KERNELS_CPU_MATMUL_PACKED_BLOCK_H_

#include <cstdint>

namespace mgc::cpu {

// Words of one block of k; part of the bits of every product.
inline constexpr int64_t kBlockWords = 512;

// C[rows, cols] = A·B over `depth` words of packed panels (kernels/cpu/simd/panels.inc).
struct PackedBlock {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t depth = 0;
  const float* a = nullptr;  // words of 4 bytes, of whatever they hold
  const float* b = nullptr;
  float* c = nullptr;
  int64_t stride = 0;            // between rows of C
  bool accumulate = false;       // C += A·B
  const float* bias = nullptr;   // [cols] or null
  const float* scale = nullptr;  // [cols] or null
  void* narrow = nullptr;        // not null: the result goes here, rounded, and C is only read
  int64_t narrow_stride = 0;
};

// C[rows, cols] = A·B of at most as many rows as a micro-tile has, with operands where they lie.
struct FewRows {
  int64_t rows = 0, cols = 0;
  int64_t depth = 0;  // elements of k
  const void* a = nullptr;
  int64_t a_row = 0, a_col = 0;  // strides
  const void* b = nullptr;
  int64_t b_row = 0, b_col = 0;
  float* c = nullptr;            // by rows; null where the result is narrow
  int64_t stride = 0;            // between rows of the result
  bool accumulate = false;       // C += A·B
  const float* bias = nullptr;   // [cols] or null
  const float* scale = nullptr;  // [cols] or null
  void* narrow = nullptr;        // the result, rounded once
};

}  // namespace mgc::cpu

#endif  // MGC_KERNELS_CPU_MATMUL_PACKED_BLOCK_H_
