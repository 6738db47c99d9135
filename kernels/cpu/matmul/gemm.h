// Matrix products: C = A·B, C += A·B, optionally with a bias, for any strides, so that transposed
// operands, slices and heads need no copy. A, B and C are f32, or A and B are of one narrower type
// and C of it or f32.
//
// The product is our own packed kernel (the block structure of Goto and van de Geijn, "Anatomy of
// High-Performance Matrix Multiplication", 2008). docs/decisions/0020-own-products.md and
// 0024-bf16-products.md say why and with which measurements.
//
// Bits: an element is an f32 sum over k in blocks of a fixed size, ascending over the blocks and in
// a fixed order inside one. It depends on nothing but its row of A, its column of B, the bias and,
// when accumulating, its old value: not on m, n, the batch, the strides, or how many threads there
// are. Any split of the output gives the same bits. Levels of instructions may differ. The bias is
// added last: an f32 C has the bits of the product to which it is added afterwards.
//
// bf16: elements are multiplied exactly (to f32, but for overflow), sums are f32, and a bf16 C is
// the f32 sum over all of k with the bias, rounded once as ToBfloat16 does. With AVX512_BF16 the
// instruction vdpbf16ps adds k + 1 before k of every even k, each product fused with its addition
// and rounded to nearest even, in blocks of 1024; denormals of A, B and the sums of a block count
// as zero. Without it elements are widened to f32 and multiplied as f32 is, denormals included.
//
// f16: as bf16 is without that instruction. i8, on the right only: the same, beside any of the
// three.
#ifndef MGC_KERNELS_CPU_MATMUL_GEMM_H_
#define MGC_KERNELS_CPU_MATMUL_GEMM_H_

#include <cstdint>

#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"
#include "kernels/cpu/simd/simd.h"
#include "kernels/parallel.h"
#include "kernels/shared/gemm_shape.h"

namespace mgc::cpu {

using mgc::GemmShape;
using mgc::GemmStrides;

// Strides of a dense row-major [batch, rows, cols], and of the transpose of such a [batch, cols,
// rows].
GemmStrides DenseStrides(int64_t rows, int64_t cols);
GemmStrides TransposedStrides(int64_t rows, int64_t cols);

// Floats of workspace that Gemm needs with `width` threads; the same or less for smaller m, n, k or
// width.
int64_t GemmWorkspaceFloats(int64_t m, int64_t n, int64_t k, int width);
// The same where C is narrower than f32: more, for sums over more of k than one block holds.
int64_t NarrowGemmWorkspaceFloats(int64_t m, int64_t n, int64_t k, int width);

// `bias` is null or [n], added to every row. `workspace` holds as many floats as said above, is
// overwritten, and need not be aligned.
void Gemm(Parallel& parallel, const GemmShape& shape, const float* a, const float* b,
          const float* bias, float* c, float* workspace);
void Gemm(Parallel& parallel, const GemmShape& shape, const Bfloat16* a, const Bfloat16* b,
          const float* bias, float* c, float* workspace);
void Gemm(Parallel& parallel, const GemmShape& shape, const Bfloat16* a, const Bfloat16* b,
          const float* bias, Bfloat16* c, float* workspace);
void Gemm(Parallel& parallel, const GemmShape& shape, const Float16* a, const Float16* b,
          const float* bias, float* c, float* workspace);
void Gemm(Parallel& parallel, const GemmShape& shape, const Float16* a, const Float16* b,
          const float* bias, Float16* c, float* workspace);

// The same for whole numbers B, without a bias: the sum over all of k times `scale`, which is null
// or [n], rounded once. C is of f32, or of A's type.
template <class T, class C>
void ScaledGemm(Parallel& parallel, const GemmShape& shape, const T* a, const int8_t* b,
                const float* scale, C* c, float* workspace);

}  // namespace mgc::cpu

#endif  // MGC_KERNELS_CPU_MATMUL_GEMM_H_
