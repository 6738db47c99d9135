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

#include "kernels/cpu/random/random.h"
#include "kernels/parallel.h"

namespace mgc::cpu {

// q, o: [batch, queries, heads, dim]; k, v: [batch, keys, kv_heads, dim]; lse: [batch, heads,
// queries], dense. Query head h reads key-value head h / (heads / kv_heads); kv_heads divides
// heads.
struct AttentionShape {
  int64_t batch = 0;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t dim = 0;
  float scale = 1;
  int64_t window = 0;  // keys that a query sees, itself and those before it; 0: all
  float cap = 0;       // scores are cap · tanh(score / cap); 0: as they are
  bool causal = true;
};

// Dropout of probabilities. With g = heads / kv_heads, element (b, h, i, j) has logical index
// base + b·batch + (h / g)·kv_head + (h mod g)·head + i·query + j, modulo 2^64.
struct AttentionDropout {
  double p = 0;
  RandomStream stream;
  uint64_t base = 0;
  uint64_t batch = 0;
  uint64_t kv_head = 0;
  uint64_t head = 0;
  uint64_t query = 0;
};

// Key j is visible to query i iff both are in one segment and, in causal attention,
// 0 <= query_positions[i] - key_positions[j], and less than the window. Tiles that no query sees by
// position are not computed. A query that sees no key gets o = 0, lse = -inf and gives zero
// gradients.
struct AttentionPositions {
  const int64_t* query = nullptr;           // [queries]
  const int64_t* key = nullptr;             // [keys]
  const int64_t* query_segments = nullptr;  // [batch, queries]; null: all are of one segment
  const int64_t* key_segments = nullptr;    // [batch, keys]
};

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
