#include "kernels/cpu/attention/attention.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/attention/attention_head.h"
#include "kernels/cpu/simd/simd.h"

#define MGC_SIMD_BODY "kernels/cpu/attention/attention.inc"
#define MGC_SIMD_WITH_BF16
#include "kernels/cpu/simd/simd_each.inc"

namespace mgc::cpu {
namespace {

// Query rows of one task: few enough to occupy everyone, many enough to pay for packing the keys.
int64_t QueryBlock(const AttentionShape& s, int hands) {
  const int64_t heads = std::max<int64_t>(s.batch * s.heads, 1);
  const int64_t blocks = (int64_t{4} * hands + heads - 1) / heads;
  const int64_t rows = RoundUp((s.queries + blocks - 1) / blocks, kQueryTile);
  return std::max<int64_t>(rows, 4 * kQueryTile);
}

int64_t SlotFloats(const AttentionShape& s) {
  const int64_t dim = RoundUp(s.dim, kLargestMicroCols);
  const int64_t keys = RoundUp(s.keys, kLargestMicroCols) * s.dim + s.keys * dim;
  return keys + kQueryTile * (s.dim + kKeyTile + dim);
}

}  // namespace

int64_t AttentionWorkspaceFloats(const AttentionShape& shape, int width) {
  return SlotFloats(shape) * width;
}

template <class T>
void Attention(Parallel& parallel, const AttentionShape& s, const AttentionDropout& dropout,
               const AttentionPositions& positions, const T* q, const T* k, const T* v, T* o,
               float* lse, float* workspace) {
  const DropoutRule rule = MakeDropoutRule(dropout.p, dropout.stream);
  const int64_t block = QueryBlock(s, parallel.hands());
  const int64_t blocks = (s.queries + block - 1) / block;
  const int64_t slot_floats = SlotFloats(s);
  ForEachTask(parallel, s.batch * s.heads * blocks, [&](int64_t task, int slot) {
    const int64_t h = task / blocks % s.heads;
    const int64_t b = task / blocks / s.heads;
    const int64_t begin = task % blocks * block;
    const int64_t end = std::min(begin + block, s.queries);
    const AttentionHead head = HeadOf(s, dropout, positions, &rule, b, h);
    const int64_t q_at = (b * s.queries * s.heads + h) * s.dim;
    const int64_t kv_at = (b * s.keys * s.kv_heads + h / (s.heads / s.kv_heads)) * s.dim;
    MGC_SIMD_CALL_WITH_BF16(parallel, AttendQueries, head, begin, end, q + q_at, k + kv_at,
                            v + kv_at, o + q_at, lse + (b * s.heads + h) * s.queries,
                            workspace + slot * slot_floats);
  });
}

template void Attention(Parallel&, const AttentionShape&, const AttentionDropout&,
                        const AttentionPositions&, const float*, const float*, const float*, float*,
                        float*, float*);
template void Attention(Parallel&, const AttentionShape&, const AttentionDropout&,
                        const AttentionPositions&, const Bfloat16*, const Bfloat16*,
                        const Bfloat16*, Bfloat16*, float*, float*);
template void Attention(Parallel&, const AttentionShape&, const AttentionDropout&,
                        const AttentionPositions&, const Float16*, const Float16*, const Float16*,
                        Float16*, float*, float*);

}  // namespace mgc::cpu
