// Attention of any element type and any dim.
#include "kernels/cuda/attention/attention_general.h"

namespace mgc::cuda {
namespace general {
namespace {

// The largest, or the sum, over the threads that share rows.
__device__ inline float MostOfRow(float x) {
  for (int by = kSide / 2; by > 0; by /= 2) x = fmaxf(x, __shfl_xor_sync(kWholeWarp, x, by));
  return x;
}
__device__ inline float SumOfRow(float x) {
  for (int by = kSide / 2; by > 0; by /= 2) x += __shfl_xor_sync(kWholeWarp, x, by);
  return x;
}

// The running softmax of a thread's rows; the threads of a row hold the same.
struct RunningSoftmax {
  float most[kOwned], sum[kOwned];

  // Turns scores into exp(score - new maximum); `shrink` is what was summed before must be
  // multiplied by. Where nothing is visible so far, all become zero; NaN stays.
  __device__ void Step(float (&scores)[kOwned][kOwned], float (&shrink)[kOwned]) {
#pragma unroll
    for (int i = 0; i < kOwned; ++i) {
      float best = most[i];
#pragma unroll
      for (int j = 0; j < kOwned; ++j) best = fmaxf(best, scores[i][j]);
      best = MostOfRow(best);
      const float from = best == -INFINITY ? 0.0f : best;
      float added = 0.0f;
#pragma unroll
      for (int j = 0; j < kOwned; ++j) {
        scores[i][j] = expf(scores[i][j] - from);
        added += scores[i][j];
      }
      shrink[i] = expf(most[i] - from);
      sum[i] = fmaf(sum[i], shrink[i], SumOfRow(added));
      most[i] = best;
    }
  }
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    AttendKernel(AttentionUse use, AttentionOperands<T> in, T* o, float* lse) {
  const AttentionShape& s = use.shape;
  const int dim = static_cast<int>(s.dim);
  const BlockPlace at = PlaceOf(s.queries, s.heads, s.dim);
  const SampleView view = ViewOf(use, at.b);
  const AttentionDrops drops = DropsOf(use, at.b, at.h);
  const int64_t kv_head = at.h / (s.heads / s.kv_heads);
  const auto q = QueryRows(s, in.q, at.b, at.h);
  const auto k = KeyRows(s, in.k, at.b, kv_head), v = KeyRows(s, in.v, at.b, kv_head);
  Tile* const tiles = TilesOf();
  ClassifyTiles<Side::kQueries>(view, at.first, kTile, kTile, tiles);
  __syncthreads();
  Sums sums;
  sums.Clear();
  RunningSoftmax softmax;
#pragma unroll
  for (int i = 0; i < kOwned; ++i) softmax.most[i] = -INFINITY, softmax.sum[i] = 0.0f;
  const int count = TilesIn(s.keys);
  for (int t = NextTile(tiles, 0, count); t < count; t = NextTile(tiles, t + 1, count)) {
    float scores[kOwned][kOwned], shrink[kOwned];
    DotProducts(q, at.first, k, t * kTile, dim, scores);
    MaskQueries(use, view, tiles[t], at.first, t * kTile, scores);
    softmax.Step(scores, shrink);
#pragma unroll
    for (int i = 0; i < kOwned; ++i) {
#pragma unroll
      for (auto& column : sums.at[i]) {
#pragma unroll
        for (float& sum : column) sum *= shrink[i];
      }
#pragma unroll
      for (int j = 0; j < kOwned && use.drops(); ++j) {
        scores[i][j] *= drops.Kept(at.first + Row() + i, t * kTile + Column() + j);
      }
    }
    PutWeights(scores);
    AddWeighted(v, t * kTile, at.chunk, dim, &sums);
  }
  float factors[kOwned];
#pragma unroll
  for (int i = 0; i < kOwned; ++i) {
    const bool any = softmax.sum[i] != 0.0f;
    factors[i] = any ? 1.0f / softmax.sum[i] : 0.0f;
    const int query = at.first + Row() + i;
    if (at.chunk == 0 && Column() == 0 && query < view.queries) {
      lse[(at.b * s.heads + at.h) * s.queries + query] =
          any ? softmax.most[i] + logf(softmax.sum[i]) : -INFINITY;
    }
  }
  PutRows(sums, factors, QueryRows(s, o, at.b, at.h), at.first, at.chunk, dim);
}

}  // namespace
}  // namespace general

template <class T>
int GeneralAttention(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in, T* o,
                     float* lse) {
  const AttentionShape& s = use.shape;
  return Launch(general::AttendKernel<T>,
                general::ShapeOf(s.queries, s.keys, s.batch * s.heads, s.dim), stream, use, in, o,
                lse);
}

#define MGC_INSTANTIATE(T)                                                                       \
  template int GeneralAttention<T>(Stream, const AttentionUse&, const AttentionOperands<T>&, T*, \
                                   float*)
MGC_INSTANTIATE(float);
MGC_INSTANTIATE(Bfloat16);
MGC_INSTANTIATE(Float16);
#undef MGC_INSTANTIATE

}  // namespace mgc::cuda
