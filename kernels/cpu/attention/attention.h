// Scaled dot-product attention in tiles: the full matrix of scores is never stored (Dao et
// al., arXiv:2205.14135, with the saved log-sum-exp of arXiv:2307.08691).
//
// Bits: a query's output depends on its own q and on all keys in their order, not on which other
// queries, heads or samples are in the call, nor on how many threads there are.
//
// bf16: arithmetic is that of f32, and results are rounded once. With AVX512_BF16 products of two
// operands are taken in pairs (kernels/cpu/matmul/gemm.h), and so are those of probabilities with
// v, which are rounded for it; gradients multiply unrounded ones. f16 is as bf16 without that
// instruction.
#ifndef MGC_KERNELS_CPU_ATTENTION_ATTENTION_H_
#define MGC_KERNELS_CPU_ATTENTION_ATTENTION_H_

#include <cstdint>

#include "kernels/parallel.h"
#include "kernels/shared/attention_shape.h"

namespace mgc::cpu {

// Floats of workspace for both directions; the same or less for smaller sizes or width. Of bf16
// gradients are summed in f32, in workspace too.
int64_t AttentionWorkspaceFloats(const AttentionShape& shape, int width);
int64_t AttentionGradWorkspaceFloats(const AttentionShape& shape, int width);
int64_t NarrowAttentionGradWorkspaceFloats(const AttentionShape& shape, int width);

// o = dropout(softmax(scale · q·kᵀ)) · v over the visible keys; lse = log of the sum of exp(scale ·
// q·k). The cap, if any, is on scale · q·k. T is float, Bfloat16 or Float16.
template <class T>
void Attention(Parallel& parallel, const AttentionShape& shape, const AttentionDropout& dropout,
               const AttentionPositions& positions, const T* q, const T* k, const T* v, T* o,
               float* lse, float* workspace);

// Gradients of all three operands, from `d_o`, the operands and the results of Attention; d_q, d_k,
// d_v are overwritten.
template <class T>
void AttentionGrad(Parallel& parallel, const AttentionShape& shape, const AttentionDropout& dropout,
                   const AttentionPositions& positions, const T* d_o, const T* q, const T* k,
                   const T* v, const T* o, const float* lse, T* d_q, T* d_k, T* d_v,
                   float* workspace);

}  // namespace mgc::cpu

#endif  // MGC_KERNELS_CPU_ATTENTION_ATTENTION_H_
