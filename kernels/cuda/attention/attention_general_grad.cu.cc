// Gradients of attention of any element type and any dim.
#include "kernels/cuda/attention/attention_general.h"

namespace mgc::cuda {
namespace general {
namespace {

// deltas[r] = sum over dims of d_o · o of row first + r. Threads side by side share a row.
template <class T>
__device__ void PutDeltas(const Rows<const T>& d_o, const Rows<const T>& o, int first, int dim) {
  constexpr int kShare = kThreads / kTile;
  const int r = static_cast<int>(threadIdx.x) / kShare,
            part = static_cast<int>(threadIdx.x) % kShare;
  float sum = 0.0f;
  if (first + r < o.count) {
    for (int d = part; d < dim; d += kShare) {
      sum = fmaf(Load(d_o[first + r][d]), Load(o[first + r][d]), sum);
    }
  }
  for (int by = kShare / 2; by > 0; by /= 2) sum += __shfl_xor_sync(kWholeWarp, sum, by);
  if (part == 0) StagedOf().deltas[r] = sum;
}

// The derivative of ScoreOf, which made `score`.
__device__ inline float SlopeOf(const AttentionShape& s, float score) {
  if (s.cap == 0.0f) return s.scale;
  const float bound = score / s.cap;
  return bound < -2.0f ? 0.0f : s.scale * (1.0f - bound * bound);
}

// The probability after dropout, and the gradient of the dot product.
struct PairGradient {
  float p, d_dot;
};

// `score` of a pair, -inf where it is invisible.
__device__ inline PairGradient GradientOf(const AttentionUse& use, float score, float lse,
                                          float d_p, float delta, float kept) {
  const float p = lse == -INFINITY ? 0.0f : expf(score - lse);
  if (p == 0.0f) return {0.0f, 0.0f};
  return {p * kept, p * (d_p * kept - delta) * SlopeOf(use.shape, score)};
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    QueryGradKernel(AttentionUse use, AttentionOperands<T> in, AttentionResults<T> results,
                    T* d_q) {
  const AttentionShape& s = use.shape;
  const int dim = static_cast<int>(s.dim);
  const BlockPlace at = PlaceOf(s.queries, s.heads, s.dim);
  const SampleView view = ViewOf(use, at.b);
  const AttentionDrops drops = DropsOf(use, at.b, at.h);
  const int64_t kv_head = at.h / (s.heads / s.kv_heads);
  const auto q = QueryRows(s, in.q, at.b, at.h), d_o = QueryRows(s, results.d_o, at.b, at.h);
  const auto k = KeyRows(s, in.k, at.b, kv_head), v = KeyRows(s, in.v, at.b, kv_head);
  Tile* const tiles = TilesOf();
  ClassifyTiles<Side::kQueries>(view, at.first, kTile, kTile, tiles);
  PutDeltas(d_o, QueryRows(s, results.o, at.b, at.h), at.first, dim);
  __syncthreads();
  const float* const lse = results.lse + (at.b * s.heads + at.h) * s.queries;
  Sums sums;
  sums.Clear();
  const int count = TilesIn(s.keys);
  for (int t = NextTile(tiles, 0, count); t < count; t = NextTile(tiles, t + 1, count)) {
    float scores[kOwned][kOwned], d_p[kOwned][kOwned];
    DotProducts(q, at.first, k, t * kTile, dim, scores);
    MaskQueries(use, view, tiles[t], at.first, t * kTile, scores);
    DotProducts(d_o, at.first, v, t * kTile, dim, d_p);
#pragma unroll
    for (int i = 0; i < kOwned; ++i) {
      const int query = at.first + Row() + i;
      const float row_lse = query < view.queries ? lse[query] : -INFINITY;
      const float delta = StagedOf().deltas[Row() + i];
#pragma unroll
      for (int j = 0; j < kOwned; ++j) {
        const float kept = use.drops() ? drops.Kept(query, t * kTile + Column() + j) : 1.0f;
        scores[i][j] = GradientOf(use, scores[i][j], row_lse, d_p[i][j], delta, kept).d_dot;
      }
    }
    PutWeights(scores);
    AddWeighted(k, t * kTile, at.chunk, dim, &sums);
  }
  const float ones[kOwned] = {1.0f, 1.0f, 1.0f, 1.0f};
  PutRows(sums, ones, QueryRows(s, d_q, at.b, at.h), at.first, at.chunk, dim);
}

// One tile of queries, from `query` on, of one head: adds to the gradients of the block's keys.
template <class T>
__device__ void AddKeyGradients(const AttentionUse& use, const AttentionOperands<T>& in,
                                const AttentionResults<T>& results, const SampleView& view,
                                const BlockPlace& at, int64_t h, Tile tile, int query, Sums* d_k,
                                Sums* d_v) {
  const AttentionShape& s = use.shape;
  const int dim = static_cast<int>(s.dim);
  const auto q = QueryRows(s, in.q, at.b, h), d_o = QueryRows(s, results.d_o, at.b, h);
  float scores[kOwned][kOwned], d_p[kOwned][kOwned];
  DotProducts(KeyRows(s, in.k, at.b, at.h), at.first, q, query, dim, scores);
  PutDeltas(d_o, QueryRows(s, results.o, at.b, h), query, dim);
  DotProducts(KeyRows(s, in.v, at.b, at.h), at.first, d_o, query, dim, d_p);
  const AttentionDrops drops = DropsOf(use, at.b, h);
#pragma unroll
  for (int j = 0; j < kOwned; ++j) {
    const int to = query + Column() + j;
    const float lse =
        to < view.queries ? results.lse[(at.b * s.heads + h) * s.queries + to] : -INFINITY;
    const float delta = StagedOf().deltas[Column() + j];
#pragma unroll
    for (int i = 0; i < kOwned; ++i) {
      const int key = at.first + Row() + i;
      const bool seen = tile == Tile::kVisible || view.Visible(to, key);
      const float score = seen ? ScoreOf(s, scores[i][j]) : -INFINITY;
      const float kept = use.drops() ? drops.Kept(to, key) : 1.0f;
      const PairGradient pair = GradientOf(use, score, lse, d_p[i][j], delta, kept);
      scores[i][j] = pair.p;
      d_p[i][j] = pair.d_dot;
    }
  }
  PutWeights(scores);
  AddWeighted(d_o, query, at.chunk, dim, d_v);
  __syncthreads();
  PutWeights(d_p);
  AddWeighted(q, query, at.chunk, dim, d_k);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    KeyGradKernel(AttentionUse use, AttentionOperands<T> in, AttentionResults<T> results, T* d_k,
                  T* d_v) {
  const AttentionShape& s = use.shape;
  const int dim = static_cast<int>(s.dim);
  const BlockPlace at = PlaceOf(s.keys, s.kv_heads, s.dim);
  const SampleView view = ViewOf(use, at.b);
  Tile* const tiles = TilesOf();
  ClassifyTiles<Side::kKeys>(view, at.first, kTile, kTile, tiles);
  __syncthreads();
  Sums keys, values;
  keys.Clear();
  values.Clear();
  const int64_t group = s.heads / s.kv_heads;
  const int count = TilesIn(s.queries);
  for (int64_t h = at.h * group; h < (at.h + 1) * group; ++h) {
    for (int t = NextTile(tiles, 0, count); t < count; t = NextTile(tiles, t + 1, count)) {
      AddKeyGradients(use, in, results, view, at, h, tiles[t], t * kTile, &keys, &values);
    }
  }
  const float ones[kOwned] = {1.0f, 1.0f, 1.0f, 1.0f};
  PutRows(keys, ones, KeyRows(s, d_k, at.b, at.h), at.first, at.chunk, dim);
  PutRows(values, ones, KeyRows(s, d_v, at.b, at.h), at.first, at.chunk, dim);
}

}  // namespace
}  // namespace general

template <class T>
int GeneralAttentionGrad(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
                         const AttentionResults<T>& results, const AttentionGradients<T>& out) {
  const AttentionShape& s = use.shape;
  const int error = Launch(general::QueryGradKernel<T>,
                           general::ShapeOf(s.queries, s.keys, s.batch * s.heads, s.dim), stream,
                           use, in, results, out.d_q);
  if (error != 0) return error;
  return Launch(general::KeyGradKernel<T>,
                general::ShapeOf(s.keys, s.queries, s.batch * s.kv_heads, s.dim), stream, use, in,
                results, out.d_k, out.d_v);
}

#define MGC_INSTANTIATE(T)                                                                       \
  template int GeneralAttentionGrad<T>(Stream, const AttentionUse&, const AttentionOperands<T>&, \
                                       const AttentionResults<T>&, const AttentionGradients<T>&)
MGC_INSTANTIATE(float);
MGC_INSTANTIATE(Bfloat16);
MGC_INSTANTIATE(Float16);
#undef MGC_INSTANTIATE

}  // namespace mgc::cuda
