// One use of attention in plain numbers, as the kernels of all backends, device code included, take
// it.

#ifndef MGC_KERNELS_SHARED_ATTENTION_SHAPE_H_
#define MGC_KERNELS_SHARED_ATTENTION_SHAPE_H_

#include <cstdint>

#include "kernels/shared/dropout.h"

namespace mgc {

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

// The logical index of (b, h, 0, 0), less the base.
constexpr uint64_t DropoutOffset(const AttentionShape& s, const AttentionDropout& dropout,
                                 int64_t b, int64_t h) {
  const int64_t group = s.heads / s.kv_heads;
  return static_cast<uint64_t>(b) * dropout.batch +
         static_cast<uint64_t>(h / group) * dropout.kv_head +
         static_cast<uint64_t>(h % group) * dropout.head;
}

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

}  // namespace mgc

#endif  // MGC_KERNELS_SHARED_ATTENTION_SHAPE_H_
