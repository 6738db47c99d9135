// One head of an attention call, as the tiled loops of attention.inc and attention_grad.inc take
// it. Private to attention.
#ifndef MGC_KERNELS_CPU_ATTENTION_ATTENTION_HEAD_H_
#define MGC_KERNELS_CPU_ATTENTION_ATTENTION_HEAD_H_

#include <cstdint>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/random/random.h"

namespace mgc::cpu {

// Tiles of scores. Both are multiples of the micro-tiles of all instruction sets; the key tile is
// part of the bits.
inline constexpr int64_t kQueryTile = 48;
inline constexpr int64_t kKeyTile = 96;

// Rows of one head are q_stride or kv_stride floats apart.
struct AttentionHead {
  int64_t queries, keys, dim;
  int64_t q_stride, kv_stride;  // floats from row to row
  float scale;
  int64_t window;  // 0: none
  float cap;       // 0: none
  bool causal;
  const int64_t* query_positions;
  const int64_t* key_positions;
  const int64_t* query_segments;  // null: all are of one segment
  const int64_t* key_segments;
  const DropoutRule* drop;  // null: none
  uint64_t drop_base, drop_stride;
};

inline AttentionHead HeadOf(const AttentionShape& s, const AttentionDropout& dropout,
                            const AttentionPositions& positions, const DropoutRule* rule, int64_t b,
                            int64_t h) {
  AttentionHead head;
  head.queries = s.queries;
  head.keys = s.keys;
  head.dim = s.dim;
  head.q_stride = s.heads * s.dim;
  head.kv_stride = s.kv_heads * s.dim;
  head.scale = s.scale;
  head.window = s.window;
  head.cap = s.cap;
  head.causal = s.causal;
  head.query_positions = positions.query;
  head.key_positions = positions.key;
  const bool segments = positions.query_segments != nullptr;
  head.query_segments = segments ? positions.query_segments + b * s.queries : nullptr;
  head.key_segments = segments ? positions.key_segments + b * s.keys : nullptr;
  head.drop = dropout.p > 0 ? rule : nullptr;
  head.drop_base = dropout.base + DropoutOffset(s, dropout, b, h);
  head.drop_stride = dropout.query;
  return head;
}

// Where the gradients of one head are summed up.
struct GradSums {
  float* d_q;
  int64_t q_stride;  // floats from row to row
  float* d_k;
  float* d_v;
  int64_t kv_stride;
};

// The largest micro-tiles of all instruction sets (micro_kernel.inc), to which packed rows and
// columns are rounded up.
inline constexpr int64_t kLargestMicroRows = 12;
inline constexpr int64_t kLargestMicroCols = 32;

inline int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

}  // namespace mgc::cpu

#endif  // MGC_KERNELS_CPU_ATTENTION_ATTENTION_HEAD_H_
