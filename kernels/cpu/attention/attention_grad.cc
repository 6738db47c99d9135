#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/attention/attention_head.h"
#include "kernels/cpu/simd/simd.h"

#define MGC_SIMD_BODY "kernels/cpu/attention/attention_grad.inc"
#include "kernels/cpu/simd/simd_each.inc"

namespace mgc::cpu {
namespace {

int64_t SlotFloats(const AttentionShape& s) {
  const int64_t dim = RoundUp(s.dim, kLargestMicroCols);
  const int64_t left = RoundUp(s.queries, kLargestMicroRows) * s.dim;
  const int64_t keys = kKeyTile * (2 * s.dim + dim);
  return 2 * left + 2 * s.queries * dim + s.queries + keys + 2 * kQueryTile * kKeyTile;
}

// Rows of `dim` floats, `stride` apart.
void ZeroRows(int64_t rows, int64_t dim, int64_t stride, float* x) {
  for (int64_t r = 0; r < rows; ++r) std::fill(x + r * stride, x + r * stride + dim, 0.0f);
}

}  // namespace

int64_t AttentionGradWorkspaceFloats(const AttentionShape& shape, int width) {
  return SlotFloats(shape) * width;
}

void AttentionGrad(Parallel& parallel, const AttentionShape& s, const AttentionDropout& dropout,
                   const AttentionPositions& positions, const float* d_o, const float* q,
                   const float* k, const float* v, const float* o, const float* lse, float* d_q,
                   float* d_k, float* d_v, float* workspace) {
  const DropoutRule rule = MakeDropoutRule(dropout.p, dropout.stream);
  const int64_t group = s.kv_heads > 0 ? s.heads / s.kv_heads : 0;
  const int64_t slot_floats = SlotFloats(s);
  // One task owns the gradients of a key-value head; its query heads add to them in ascending
  // order.
  ForEachTask(parallel, s.batch * s.kv_heads, [&](int64_t task, int slot) {
    const int64_t b = task / s.kv_heads;
    const int64_t kv_head = task % s.kv_heads;
    const int64_t kv_at = (b * s.keys * s.kv_heads + kv_head) * s.dim;
    ZeroRows(s.keys, s.dim, s.kv_heads * s.dim, d_k + kv_at);
    ZeroRows(s.keys, s.dim, s.kv_heads * s.dim, d_v + kv_at);
    for (int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
      const AttentionHead head = HeadOf(s, dropout, positions, &rule, b, h);
      const int64_t at = (b * s.queries * s.heads + h) * s.dim;
      ZeroRows(s.queries, s.dim, s.heads * s.dim, d_q + at);
      MGC_SIMD_CALL(AttendGrad, head, d_o + at, q + at, k + kv_at, v + kv_at, o + at,
                    lse + (b * s.heads + h) * s.queries, d_q + at, d_k + kv_at, d_v + kv_at,
                    workspace + slot * slot_floats);
    }
  });
}

}  // namespace mgc::cpu
