// A block of keys on tensor cores, which goes through tiles of queries: the gradients of its keys
// and values, and of the scores. Device code only.

#ifndef MGC_KERNELS_CUDA_ATTENTION_ATTENTION_TENSOR_KEY_GRAD_H_
#define MGC_KERNELS_CUDA_ATTENTION_ATTENTION_TENSOR_KEY_GRAD_H_

#include "kernels/cuda/attention/attention_tensor_grad.h"
#include "kernels/cuda/attention/attention_tensor_shape.h"

namespace mgc::cuda {

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

// A block of keys and what it adds up, over all heads that share them.
template <class T, int kDim, bool kPlain>
struct KeyGradBlock {
  static constexpr TensorTiles kTiles = KeyGradTiles(kDim, kPlain);
  static constexpr int kRows = kTiles.rows(), kColumns = kTiles.columns, kBands = kTiles.bands;
  static constexpr int kThreads = kTiles.threads();

  const AttentionUse& use;
  const AttentionOperands<T>& in;
  const AttentionResults<T>& results;
  T* d_q;  // for its deltas
  HeadPlace at;
  int row;  // the warp's first, of the block's
  SharedRows<T, kDim> keys, values;
  StagedPairs<T, kDim, kColumns> pairs;
  ColumnStatistics<T, kColumns> statistics;
  Tile* tiles;
  Band<kDim> key_sums[kBands], value_sums[kBands];

  // Calls add(tile, stage) for each tile of queries that sees the keys, once it is in `stage` of
  // the shared memory; the next one is on its way by then.
  template <class Add>
  __device__ __forceinline__ void ForEachTile(const Add& add) {
    Begin();
    QueryTile tile = First();
    int stage = 0;
    Start(tile, stage);
    statistics.Put(stage);
    for (; Has(tile); stage ^= 1) {
      WaitCopies<0>();
      __syncthreads();  // the tile is there, and nobody reads the one before
      const QueryTile next = After(tile);
      Start(next, stage ^ 1);
      add(tile, stage);
      statistics.Put(stage ^ 1);
      tile = next;
    }
    WaitCopies<0>();
  }

  __device__ __forceinline__ int count() const {
    return static_cast<int>((use.shape.queries + kColumns - 1) / kColumns);
  }
  __device__ __forceinline__ int dim() const { return static_cast<int>(use.shape.dim); }
  __device__ __forceinline__ int group() const {
    return static_cast<int>(use.shape.heads / use.shape.kv_heads);
  }
  __device__ __forceinline__ QueryTile First() const {
    return {at.h * group(), NextTile(tiles, 0, count())};
  }
  __device__ __forceinline__ bool Has(const QueryTile& tile) const {
    return tile.t < count() && tile.h < (at.h + 1) * group();
  }
  __device__ __forceinline__ QueryTile After(const QueryTile& tile) const {
    const int t = NextTile(tiles, tile.t + 1, count());
    return t < count() ? QueryTile{tile.h, t} : QueryTile{tile.h + 1, NextTile(tiles, 0, count())};
  }

  // The copy of a tile of q and d_o, where there is one, and the load of its statistics.
  __device__ __forceinline__ void Start(const QueryTile& tile, int stage) {
    const AttentionShape& s = use.shape;
    if (Has(tile)) {
      const int b = Opaque(at.b), query = tile.t * kColumns;
      StartCopy<kColumns, kThreads>(pairs.First(stage), QueryRows(s, in.q, b, tile.h), query,
                                    dim());
      StartCopy<kColumns, kThreads>(pairs.Second(stage), QueryRows(s, results.d_o, b, tile.h),
                                    query, dim());
      statistics.Load(results.lse + (b * s.heads + tile.h) * s.queries,
                      QueryRows(s, d_q, b, tile.h), query);
    }
    CommitCopies();
  }

  // The block's own operands; which tiles it sees.
  __device__ __forceinline__ void Begin() {
    const AttentionShape& s = use.shape;
    StartCopy<kRows, kThreads>(keys, KeyRows(s, in.k, at.b, at.h), at.first, dim());
    StartCopy<kRows, kThreads>(values, KeyRows(s, in.v, at.b, at.h), at.first, dim());
    ClassifyTiles<Side::kKeys>(ViewOf(use, at.b), at.first, kRows, kColumns, tiles);
#pragma unroll
    for (int b = 0; b < kBands; ++b) key_sums[b].Clear(), value_sums[b].Clear();
    __syncthreads();
  }

  // Probabilities after dropout and gradients of scores of a tile. False: the warp's keys see none
  // of it.
  __device__ __forceinline__ bool ScoreTile(const QueryTile& tile, int stage,
                                            Band<kColumns> (&scores)[kBands],
                                            Band<kColumns> (&d_p)[kBands]) const {
    const auto mask = TileMask<Side::kKeys>::Of(tiles[tile.t], ViewOf(use, Opaque(at.b)), at.first,
                                                tile.t * kColumns);
    if (mask.Hides(row, kBands * 16, kColumns)) return false;
    DotRows(keys, row, pairs.First(stage), scores);
    DotRows(values, row, pairs.Second(stage), d_p);
    const AttentionDrops drops = kPlain ? AttentionDrops{} : DropsOf(use, at.b, tile.h);
    const float* const powers = statistics.Powers(stage) + BandColumn();
    const float* const deltas = statistics.Deltas(stage) + BandColumn();
#pragma unroll
    for (int b = 0; b < kBands; ++b) {
      const int key = at.first + row + 16 * b, query = tile.t * kColumns;
      if (!kPlain && use.shape.cap != 0.0f) CapBand(use.shape, &scores[b]);
      mask.Apply(ViewOf(use, Opaque(at.b)), at.first, row + 16 * b, query, &scores[b]);
      GradientsOfBand<kPlain>(
          use, [&](int n, int i) { return powers[8 * n + i % 2]; },
          [&](int n, int i) { return deltas[8 * n + i % 2]; },
          [&](int n, float(&kept)[4]) {
            KeptOfBlock<Side::kKeys>(drops, key, query + 8 * n, kept);
          },
          &scores[b], &d_p[b]);
    }
    return true;
  }

  __device__ __forceinline__ void AddTile(int stage, const Band<kColumns> (&scores)[kBands],
                                          const Band<kColumns> (&d_p)[kBands]) {
    AddRows(scores, pairs.Second(stage), value_sums);
    AddRows(d_p, pairs.First(stage), key_sums);
  }

  __device__ __forceinline__ void End(T* d_k, T* d_v) {
    const AttentionShape& s = use.shape;
    const float scales[2] = {s.scale, s.scale};
#pragma unroll
    for (int b = 0; b < kBands; ++b) {
      const int band = row + 16 * b, to = at.first + band;
      Scale(scales, &key_sums[b]);
      PutRowsOfBand(keys, band, key_sums[b], to, dim(), KeyRows(s, d_k, at.b, at.h));
      PutRowsOfBand(values, band, value_sums[b], to, dim(), KeyRows(s, d_v, at.b, at.h));
    }
  }
};

// A block's place in shared memory: its own rows, two pairs of tiles, statistics, classes of tiles.
template <class T, int kDim, bool kPlain>
__device__ __forceinline__ KeyGradBlock<T, kDim, kPlain> KeyGradBlockAt(
    const AttentionUse& use, const AttentionOperands<T>& in, const AttentionResults<T>& results,
    T* d_q, const HeadPlace& at) {
  using Block = KeyGradBlock<T, kDim, kPlain>;
  T* const shared = reinterpret_cast<T*>(SharedBytes());
  T* const staged = shared + 2 * Block::kRows * kDim;
  float* const columns = reinterpret_cast<float*>(staged + decltype(Block::pairs)::kElements);
  const int row = static_cast<int>(threadIdx.x) / kWarp * Block::kBands * 16;
  return {use,
          in,
          results,
          d_q,
          at,
          row,
          {shared},
          {shared + Block::kRows * kDim},
          {staged},
          {columns, 0.0f, 0.0f},
          reinterpret_cast<Tile*>(columns + 4 * Block::kColumns),
          {},
          {}};
}

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_ATTENTION_ATTENTION_TENSOR_KEY_GRAD_H_
