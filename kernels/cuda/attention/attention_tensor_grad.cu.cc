// Gradients of attention on tensor cores. See attention_tensor.h for who owns what.
//
// Three launches: delta = d_o · o of every row; the gradients of keys and values, by blocks of
// keys; those of queries, by blocks of queries. Both of the latter compute the scores anew, so that
// every sum is one warp's and has one order. Deltas need room that no workspace promises: each
// stands in the first bytes of its row of d_q, until the row's own block reads it and writes the
// row.
#include "kernels/cuda/attention/attention_tensor.h"
#include "kernels/cuda/attention/attention_tensor_shape.h"

namespace mgc::cuda {
namespace {

template <class T>
__device__ float& DeltaOf(T* d_q_row) {
  return *reinterpret_cast<float*>(d_q_row);
}

constexpr int kDeltaThreads = 256;

// One row for kDim / 8 lanes, a vector each.
template <class T, int kDim>
__global__ void __launch_bounds__(kDeltaThreads)
    DeltaKernel(int64_t rows, int dim, const T* d_o, const T* o, T* d_q) {
  constexpr int kShare = kDim / 8;
  const int lane = static_cast<int>(threadIdx.x) % kShare;
  const int64_t row = (int64_t{blockIdx.x} * kDeltaThreads + threadIdx.x) / kShare;
  float sum = 0.0f;
  if (row < rows && lane * 8 < dim) {
    const auto a = *reinterpret_cast<const Vector<T, 8>*>(d_o + row * dim + lane * 8);
    const auto b = *reinterpret_cast<const Vector<T, 8>*>(o + row * dim + lane * 8);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum = fmaf(Load(a.at[i]), Load(b.at[i]), sum);
  }
#pragma unroll
  for (int by = kShare / 2; by > 0; by /= 2) sum += __shfl_xor_sync(kWholeWarp, sum, by);
  if (row < rows && lane == 0) DeltaOf(d_q + row * dim) = sum;
}

// What a row's probabilities are divided by, as a power of two. Infinite where nothing is visible.
__device__ __forceinline__ float PowerOf(float lse) {
  return lse == -INFINITY ? INFINITY : lse * kLog2E;
}

// What of a score's derivative the scale is not: 1 without a cap.
__device__ __forceinline__ float BendOf(float cap, float score) {
  const float bound = score / cap;
  return bound < -2.0f ? 0.0f : 1.0f - bound * bound;
}

// From scores and d_o · v: probabilities after dropout, and the gradients of scores. `power_of` and
// `delta_of` give the row's of the element that is register i of block n; `kept_of` what dropout
// multiplies it by.
template <bool kPlain, int kColumns, class PowerOfElement, class DeltaOfElement,
          class KeptOfElement>
__device__ __forceinline__ void GradientsOfBand(const AttentionUse& use,
                                                const PowerOfElement& power_of,
                                                const DeltaOfElement& delta_of,
                                                const KeptOfElement& kept_of,
                                                Band<kColumns>* scores, Band<kColumns>* d_p) {
  const float exponent = ExponentScale(use.shape);
  const float cap = use.shape.cap;
#pragma unroll
  for (int n = 0; n < Band<kColumns>::kBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float& score = scores->at[n][i];
      float& gradient = d_p->at[n][i];
      const float p = Exp2(fmaf(score, exponent, -power_of(n, i)));
      if constexpr (kPlain) {
        gradient = p * (gradient - delta_of(n, i));
        score = p;
      } else {
        const float kept = use.drops() ? kept_of(n, i) : 1.0f;
        const float bend = cap == 0.0f ? 1.0f : BendOf(cap, score);
        gradient = p * fmaf(gradient, kept, -delta_of(n, i)) * bend;
        score = p * kept;
      }
    }
  }
}

// Tiles of the other side, in pairs: one in use, one on its way.
template <class T, int kDim, int kColumns>
struct StagedPairs {
  using Shared = SharedRows<T, kDim>;
  T* at;

  static constexpr int kElements = 4 * kColumns * kDim;
  __device__ Shared First(int stage) const { return {at + stage * 2 * kColumns * kDim}; }
  __device__ Shared Second(int stage) const { return {First(stage).at + kColumns * kDim}; }
};

template <class T, int kDim, bool kPlain>
__global__ void __launch_bounds__(QueryGradTiles(kDim, kPlain).threads())
    TensorQueryGradKernel(AttentionUse use, AttentionOperands<T> in, AttentionResults<T> results,
                          T* d_q) {
  constexpr TensorTiles kTiles = QueryGradTiles(kDim, kPlain);
  constexpr int kRows = kTiles.rows(), kColumns = kTiles.columns, kBands = kTiles.bands;
  constexpr int kThreads = kTiles.threads();
  using Shared = SharedRows<T, kDim>;
  const AttentionShape& s = use.shape;
  const int dim = static_cast<int>(s.dim);
  const HeadPlace at = HeadPlaceOf(s.queries, s.heads, kRows);
  const int kv_head = at.h / static_cast<int>(s.heads / s.kv_heads);
  const auto gradients = QueryRows(s, d_q, at.b, at.h);
  const Shared queries = {reinterpret_cast<T*>(SharedBytes())};
  const Shared d_os = {queries.at + kRows * kDim};
  const StagedPairs<T, kDim, kColumns> pairs = {d_os.at + kRows * kDim};
  Tile* const tiles = reinterpret_cast<Tile*>(pairs.at + pairs.kElements);
  StartCopy<kRows, kThreads>(queries, QueryRows(s, in.q, at.b, at.h), at.first, dim);
  StartCopy<kRows, kThreads>(d_os, QueryRows(s, results.d_o, at.b, at.h), at.first, dim);
  ClassifyTiles<Side::kQueries>(ViewOf(use, at.b), at.first, kRows, kColumns, tiles);
  const int row = static_cast<int>(threadIdx.x) / kWarp * kBands * 16;
  float power[kBands][2], delta[kBands][2];
  const float* const lse = results.lse + (at.b * s.heads + at.h) * s.queries;
#pragma unroll
  for (int e = 0; e < kBands * 2; ++e) {
    const int i = at.first + row + 8 * e + BandRow();
    power[e / 2][e % 2] = i < gradients.count ? PowerOf(lse[i]) : INFINITY;
    delta[e / 2][e % 2] = i < gradients.count ? DeltaOf(gradients[i]) : 0.0f;
  }
  __syncthreads();
  const int count = static_cast<int>((s.keys + kColumns - 1) / kColumns);
  const auto start = [&](int t, int stage) {
    if (t < count) {
      const int b = Opaque(at.b), key = t * kColumns;
      StartCopy<kColumns, kThreads>(pairs.First(stage), KeyRows(s, in.k, b, kv_head), key, dim);
      StartCopy<kColumns, kThreads>(pairs.Second(stage), KeyRows(s, in.v, b, kv_head), key, dim);
    }
    CommitCopies();
  };
  Band<kDim> sums[kBands];
#pragma unroll
  for (auto& band : sums) band.Clear();
  int t = NextTile(tiles, 0, count), stage = 0;
  start(t, stage);
  for (; t < count; stage ^= 1) {
    WaitCopies<0>();
    __syncthreads();  // the tile is there, and nobody reads the one before
    const int next = NextTile(tiles, t + 1, count), key = t * kColumns;
    start(next, stage ^ 1);
    Band<kColumns> scores[kBands], d_p[kBands];
    DotRows(queries, row, pairs.First(stage), scores);
    DotRows(d_os, row, pairs.Second(stage), d_p);
#pragma unroll
    for (int b = 0; b < kBands; ++b) {
      const int query = at.first + row + 16 * b;
      if (!kPlain && s.cap != 0.0f) CapBand(s, &scores[b]);
      if (tiles[t] == Tile::kMixed) {
        MaskBand<Side::kQueries>(ViewOf(use, Opaque(at.b)), query, key, &scores[b]);
      }
      const AttentionDrops drops = kPlain ? AttentionDrops{} : DropsOf(use, at.b, at.h);
      GradientsOfBand<kPlain>(
          use, [&](int, int i) { return power[b][i / 2]; },
          [&](int, int i) { return delta[b][i / 2]; },
          [&](int n, int i) {
            return drops.Kept(query + BandRow() + i / 2 * 8, key + 8 * n + BandColumn() + i % 2);
          },
          &scores[b], &d_p[b]);
    }
    AddRows(d_p, pairs.First(stage), sums);
    t = next;
  }
  WaitCopies<0>();
  const float scales[2] = {s.scale, s.scale};
#pragma unroll
  for (int b = 0; b < kBands; ++b) {
    Scale(scales, &sums[b]);
    PutRowsOfBand(queries, row + 16 * b, sums[b], at.first + row + 16 * b, dim, gradients);
  }
}

// lse and delta of the queries of a tile, as powers of two, brought by the first kColumns threads:
// loaded early, and put down when the tile before is done with.
template <class T, int kColumns>
struct ColumnStatistics {
  float* at;  // [2 stages][powers, deltas][kColumns]
  float power, delta;

  __device__ const float* Powers(int stage) const { return at + stage * 2 * kColumns; }
  __device__ const float* Deltas(int stage) const { return Powers(stage) + kColumns; }

  __device__ void Load(const float* lse, const Rows<T>& d_q, int query) {
    const int i = query + static_cast<int>(threadIdx.x);
    const bool inside = threadIdx.x < kColumns && i < d_q.count;
    power = inside ? PowerOf(lse[i]) : INFINITY;
    delta = inside ? DeltaOf(d_q[i]) : 0.0f;
  }
  __device__ void Put(int stage) const {
    if (threadIdx.x >= kColumns) return;
    at[stage * 2 * kColumns + threadIdx.x] = power;
    at[(stage * 2 + 1) * kColumns + threadIdx.x] = delta;
  }
};

// A tile of queries of one of the heads that share keys.
struct QueryTile {
  int h, t;
};

template <class T, int kDim, bool kPlain>
__global__ void __launch_bounds__(KeyGradTiles(kDim, kPlain).threads())
    TensorKeyGradKernel(AttentionUse use, AttentionOperands<T> in, AttentionResults<T> results,
                        T* d_q, T* d_k, T* d_v) {
  constexpr TensorTiles kTiles = KeyGradTiles(kDim, kPlain);
  constexpr int kRows = kTiles.rows(), kColumns = kTiles.columns, kBands = kTiles.bands;
  constexpr int kThreads = kTiles.threads();
  using Shared = SharedRows<T, kDim>;
  const AttentionShape& s = use.shape;
  const int dim = static_cast<int>(s.dim);
  const HeadPlace at = HeadPlaceOf(s.keys, s.kv_heads, kRows);
  const Shared keys = {reinterpret_cast<T*>(SharedBytes())};
  const Shared values = {keys.at + kRows * kDim};
  const StagedPairs<T, kDim, kColumns> pairs = {values.at + kRows * kDim};
  ColumnStatistics<T, kColumns> statistics = {reinterpret_cast<float*>(pairs.at + pairs.kElements),
                                              0.0f, 0.0f};
  Tile* const tiles = reinterpret_cast<Tile*>(statistics.at + 4 * kColumns);
  StartCopy<kRows, kThreads>(keys, KeyRows(s, in.k, at.b, at.h), at.first, dim);
  StartCopy<kRows, kThreads>(values, KeyRows(s, in.v, at.b, at.h), at.first, dim);
  ClassifyTiles<Side::kKeys>(ViewOf(use, at.b), at.first, kRows, kColumns, tiles);
  __syncthreads();
  const int count = static_cast<int>((s.queries + kColumns - 1) / kColumns);
  const int first = NextTile(tiles, 0, count);
  const int group = static_cast<int>(s.heads / s.kv_heads), last = (at.h + 1) * group;
  const auto start = [&](const QueryTile& tile, int stage) {
    if (tile.t < count && tile.h < last) {
      const int b = Opaque(at.b), query = tile.t * kColumns;
      StartCopy<kColumns, kThreads>(pairs.First(stage), QueryRows(s, in.q, b, tile.h), query, dim);
      StartCopy<kColumns, kThreads>(pairs.Second(stage), QueryRows(s, results.d_o, b, tile.h),
                                    query, dim);
      statistics.Load(results.lse + (b * s.heads + tile.h) * s.queries,
                      QueryRows(s, d_q, b, tile.h), query);
    }
    CommitCopies();
  };
  const auto after = [&](const QueryTile& tile) {
    const int t = NextTile(tiles, tile.t + 1, count);
    return t < count ? QueryTile{tile.h, t} : QueryTile{tile.h + 1, first};
  };
  const int row = static_cast<int>(threadIdx.x) / kWarp * kBands * 16;
  Band<kDim> key_sums[kBands], value_sums[kBands];
#pragma unroll
  for (int b = 0; b < kBands; ++b) key_sums[b].Clear(), value_sums[b].Clear();
  QueryTile tile = {at.h * group, first};
  int stage = 0;
  start(tile, stage);
  statistics.Put(stage);
  for (; tile.t < count && tile.h < last; stage ^= 1) {
    WaitCopies<0>();
    __syncthreads();  // the tile is there, and nobody reads the one before
    const QueryTile next = after(tile);
    start(next, stage ^ 1);
    const int query = tile.t * kColumns;
    const AttentionDrops drops = kPlain ? AttentionDrops{} : DropsOf(use, at.b, tile.h);
    Band<kColumns> scores[kBands], d_p[kBands];
    DotRows(keys, row, pairs.First(stage), scores);
    DotRows(values, row, pairs.Second(stage), d_p);
    const float* const powers = statistics.Powers(stage) + BandColumn();
    const float* const deltas = statistics.Deltas(stage) + BandColumn();
#pragma unroll
    for (int b = 0; b < kBands; ++b) {
      const int key = at.first + row + 16 * b;
      if (!kPlain && s.cap != 0.0f) CapBand(s, &scores[b]);
      if (tiles[tile.t] == Tile::kMixed) {
        MaskBand<Side::kKeys>(ViewOf(use, Opaque(at.b)), key, query, &scores[b]);
      }
      GradientsOfBand<kPlain>(
          use, [&](int n, int i) { return powers[8 * n + i % 2]; },
          [&](int n, int i) { return deltas[8 * n + i % 2]; },
          [&](int n, int i) {
            return drops.Kept(query + 8 * n + BandColumn() + i % 2, key + BandRow() + i / 2 * 8);
          },
          &scores[b], &d_p[b]);
    }
    AddRows(scores, pairs.Second(stage), value_sums);
    AddRows(d_p, pairs.First(stage), key_sums);
    statistics.Put(stage ^ 1);
    tile = next;
  }
  WaitCopies<0>();
  const float scales[2] = {s.scale, s.scale};
#pragma unroll
  for (int b = 0; b < kBands; ++b) {
    const int to = at.first + row + 16 * b;
    Scale(scales, &key_sums[b]);
    PutRowsOfBand(keys, row + 16 * b, key_sums[b], to, dim, KeyRows(s, d_k, at.b, at.h));
    PutRowsOfBand(values, row + 16 * b, value_sums[b], to, dim, KeyRows(s, d_v, at.b, at.h));
  }
}

template <class T, int kDim, bool kPlain>
int Gradients(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
              const AttentionResults<T>& results, const AttentionGradients<T>& out) {
  const AttentionShape& s = use.shape;
  const int64_t rows = s.batch * s.queries * s.heads;
  constexpr int kDeltaRows = kDeltaThreads / (kDim / 8);
  int error = Launch(DeltaKernel<T, kDim>,
                     ShapeForRows((rows + kDeltaRows - 1) / kDeltaRows, kDeltaThreads), stream,
                     rows, static_cast<int>(s.dim), results.d_o, results.o, out.d_q);
  if (error != 0) return error;
  error =
      Launch(TensorKeyGradKernel<T, kDim, kPlain>,
             TensorShape(KeyGradTiles(kDim, kPlain), kDim, s.keys, s.batch * s.kv_heads, s.queries),
             stream, use, in, results, out.d_q, out.d_k, out.d_v);
  if (error != 0) return error;
  return Launch(
      TensorQueryGradKernel<T, kDim, kPlain>,
      TensorShape(QueryGradTiles(kDim, kPlain), kDim, s.queries, s.batch * s.heads, s.keys), stream,
      use, in, results, out.d_q);
}

template <class T, int kDim>
int ForKind(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
            const AttentionResults<T>& results, const AttentionGradients<T>& out) {
  return IsPlain(use.shape, use.dropout) ? Gradients<T, kDim, true>(stream, use, in, results, out)
                                         : Gradients<T, kDim, false>(stream, use, in, results, out);
}

}  // namespace

template <class T>
int TensorAttentionGrad(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
                        const AttentionResults<T>& results, const AttentionGradients<T>& out) {
  return TensorDim(use.shape.dim) == 64 ? ForKind<T, 64>(stream, use, in, results, out)
                                        : ForKind<T, 128>(stream, use, in, results, out);
}

#define MGC_INSTANTIATE(T)                                                                      \
  template int TensorAttentionGrad<T>(Stream, const AttentionUse&, const AttentionOperands<T>&, \
                                      const AttentionResults<T>&, const AttentionGradients<T>&)
MGC_INSTANTIATE(Bfloat16);
MGC_INSTANTIATE(Float16);
#undef MGC_INSTANTIATE

}  // namespace mgc::cuda
