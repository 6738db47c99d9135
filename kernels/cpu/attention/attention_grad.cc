#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/attention/attention_head.h"
#include "kernels/cpu/simd/simd.h"

#define MGC_SIMD_BODY "kernels/cpu/attention/attention_grad.inc"
#define MGC_SIMD_WITH_BF16
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

// The gradients of one key-value head: those of its query heads are added in ascending order.
// Results of f32 are sums themselves; others are rounded from sums in workspace.
template <class T>
class HeadGradients {
 public:
  // `sums`: floats of workspace, for results that are not of f32.
  HeadGradients(const Parallel& parallel, const AttentionShape& s, float* sums, T* d_q, T* d_k,
                T* d_v)
      : parallel_(parallel), s_(s), sums_(sums), d_q_(d_q), d_k_(d_k), d_v_(d_v) {}

  void Begin() {
    const int64_t q_stride = s_.heads * s_.dim, kv_stride = s_.kv_heads * s_.dim;
    if constexpr (std::is_same_v<T, float>) {
      at_ = {d_q_, q_stride, d_k_, d_v_, kv_stride};
    } else {
      float* d_k = sums_ + s_.queries * s_.dim;
      at_ = {sums_, s_.dim, d_k, d_k + s_.keys * s_.dim, s_.dim};
    }
    ZeroRows(s_.keys, s_.dim, at_.kv_stride, at_.d_k);
    ZeroRows(s_.keys, s_.dim, at_.kv_stride, at_.d_v);
  }

  // The sums for query head `h` of the group.
  GradSums BeginQueries(int64_t h) {
    GradSums sums = at_;
    if constexpr (std::is_same_v<T, float>) sums.d_q += h * s_.dim;
    ZeroRows(s_.queries, s_.dim, sums.q_stride, sums.d_q);
    return sums;
  }

  void EndQueries(int64_t h) {
    if constexpr (!std::is_same_v<T, float>) {
      Round(s_.queries, at_.d_q, s_.heads * s_.dim, d_q_ + h * s_.dim);
    }
  }

  void End() {
    if constexpr (!std::is_same_v<T, float>) {
      Round(s_.keys, at_.d_k, s_.kv_heads * s_.dim, d_k_);
      Round(s_.keys, at_.d_v, s_.kv_heads * s_.dim, d_v_);
    }
  }

 private:
  void Round(int64_t rows, const float* sums, int64_t stride, T* to) const {
    MGC_SIMD_CALL(parallel_, RoundRows, rows, s_.dim, stride, sums, to);
  }

  const Parallel& parallel_;
  const AttentionShape& s_;
  float* sums_;
  T* d_q_;
  T* d_k_;
  T* d_v_;
  GradSums at_ = {};
};

int64_t NarrowSlotFloats(const AttentionShape& s) {
  return SlotFloats(s) + (s.queries + 2 * s.keys) * s.dim;
}

}  // namespace

int64_t AttentionGradWorkspaceFloats(const AttentionShape& shape, int width) {
  return SlotFloats(shape) * width;
}

int64_t NarrowAttentionGradWorkspaceFloats(const AttentionShape& shape, int width) {
  return NarrowSlotFloats(shape) * width;
}

template <class T>
void AttentionGrad(Parallel& parallel, const AttentionShape& s, const AttentionDropout& dropout,
                   const AttentionPositions& positions, const T* d_o, const T* q, const T* k,
                   const T* v, const T* o, const float* lse, T* d_q, T* d_k, T* d_v,
                   float* workspace) {
  const DropoutRule rule = MakeDropoutRule(dropout.p, dropout.stream);
  const int64_t group = s.kv_heads > 0 ? s.heads / s.kv_heads : 0;
  const int64_t slot_floats = std::is_same_v<T, float> ? SlotFloats(s) : NarrowSlotFloats(s);
  // One task owns the gradients of a key-value head.
  ForEachTask(parallel, s.batch * s.kv_heads, [&](int64_t task, int slot) {
    const int64_t b = task / s.kv_heads;
    const int64_t kv_head = task % s.kv_heads;
    const int64_t kv_at = (b * s.keys * s.kv_heads + kv_head) * s.dim;
    const int64_t q_at = (b * s.queries * s.heads + kv_head * group) * s.dim;
    float* work = workspace + slot * slot_floats;
    HeadGradients<T> gradients(parallel, s, work + SlotFloats(s), d_q + q_at, d_k + kv_at,
                               d_v + kv_at);
    gradients.Begin();
    for (int64_t g = 0; g < group; ++g) {
      const int64_t h = kv_head * group + g;
      const AttentionHead head = HeadOf(s, dropout, positions, &rule, b, h);
      const int64_t at = q_at + g * s.dim;
      MGC_SIMD_CALL_WITH_BF16(parallel, AttendGrad, head, d_o + at, q + at, k + kv_at, v + kv_at,
                              o + at, lse + (b * s.heads + h) * s.queries,
                              gradients.BeginQueries(g), work);
      gradients.EndQueries(g);
    }
    gradients.End();
  });
}

template void AttentionGrad(Parallel&, const AttentionShape&, const AttentionDropout&,
                            const AttentionPositions&, const float*, const float*, const float*,
                            const float*, const float*, const float*, float*, float*, float*,
                            float*);
template void AttentionGrad(Parallel&, const AttentionShape&, const AttentionDropout&,
                            const AttentionPositions&, const Bfloat16*, const Bfloat16*,
                            const Bfloat16*, const Bfloat16*, const Bfloat16*, const float*,
                            Bfloat16*, Bfloat16*, Bfloat16*, float*);
template void AttentionGrad(Parallel&, const AttentionShape&, const AttentionDropout&,
                            const AttentionPositions&, const Float16*, const Float16*,
                            const Float16*, const Float16*, const Float16*, const float*, Float16*,
                            Float16*, Float16*, float*);

}  // namespace mgc::cpu
