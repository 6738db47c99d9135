// One block of a product, as gemm.cc hands it to the loops that are compiled for every instruction
// set.
#ifndef MGC_KERNELS_CPU_MATMUL_PACKED_BLOCK_H_
#define MGC_KERNELS_CPU_MATMUL_PACKED_BLOCK_H_

#include <cstdint>

namespace mgc::cpu {

// C[rows, cols] = A·B over `depth` words of packed panels (kernels/cpu/simd/panels.inc).
struct PackedBlock {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t depth = 0;
  const float* a = nullptr;  // words of 4 bytes, of whatever they hold
  const float* b = nullptr;
  float* c = nullptr;
  int64_t stride = 0;           // between rows of C
  bool accumulate = false;      // C += A·B
  const float* bias = nullptr;  // [cols] or null
  void* narrow = nullptr;       // not null: the result goes here, rounded, and C is only read
  int64_t narrow_stride = 0;
};

}  // namespace mgc::cpu

#endif  // MGC_KERNELS_CPU_MATMUL_PACKED_BLOCK_H_
