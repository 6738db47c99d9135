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
  float* at;  // [stages][powers, deltas][kColumns]
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

// A block of keys, and the tiles of queries that it goes through, of all heads that share the keys.
// A Config says how many rows there are of both, by how many threads, how they lie in shared
// memory, and how many tiles there are at a time.
template <class Config>
struct KeyBlock {
  using T = typename Config::Element;
  static constexpr int kRows = Config::kRows, kColumns = Config::kColumns;
  static constexpr int kThreads = Config::kThreads, kStages = Config::kStages;

  const AttentionUse& use;
  const AttentionOperands<T>& in;
  const AttentionResults<T>& results;
  T* d_q;  // for its deltas
  HeadPlace at;
  typename Config::Own keys, values;
  StagedPairs<T, typename Config::Other, kColumns, kStages> pairs;
  ColumnStatistics<T, kColumns> statistics;
  Tile* tiles;

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
    __syncthreads();
  }

  // Writes the sums of a band of keys from the block's `row` on, by way of the rows that they come
  // from. `key_sums` are still to be scaled.
  template <int kDim>
  __device__ __forceinline__ void Put(int row, Band<kDim>* key_sums, const Band<kDim>& value_sums,
                                      T* d_k, T* d_v) const {
    const AttentionShape& s = use.shape;
    const float scales[2] = {s.scale, s.scale};
    Scale(scales, key_sums);
    PutRowsOfBand(keys, row, *key_sums, at.first + row, dim(), KeyRows(s, d_k, at.b, at.h));
    PutRowsOfBand(values, row, value_sums, at.first + row, dim(), KeyRows(s, d_v, at.b, at.h));
  }
};

// The block whose shared memory begins at `shared`: its own rows, pairs of tiles, `beside`
// elements of others, statistics, classes of tiles.
template <class Config, class T>
__device__ __forceinline__ KeyBlock<Config> KeyBlockAt(const AttentionUse& use,
                                                       const AttentionOperands<T>& in,
                                                       const AttentionResults<T>& results, T* d_q,
                                                       const HeadPlace& at, int beside = 0) {
  using Block = KeyBlock<Config>;
  constexpr int kOwn = Block::kRows * Config::Own::kChunks * Config::Own::kChunk;
  T* const shared = reinterpret_cast<T*>(SharedBytes());
  T* const staged = shared + 2 * kOwn;
  float* const columns =
      reinterpret_cast<float*>(staged + decltype(Block::pairs)::kElements + beside);
  return {use,
          in,
          results,
          d_q,
          at,
          {shared},
          {shared + kOwn},
          {staged},
          {columns, 0.0f, 0.0f},
          reinterpret_cast<Tile*>(columns + 2 * Block::kStages * Block::kColumns)};
}

// How warps take it.
template <class T, int kDim, bool kPlain>
struct KeyGradConfig {
  static constexpr TensorTiles kTiles = KeyGradTiles(kDim, kPlain);
  static constexpr int kRows = kTiles.rows(), kColumns = kTiles.columns, kBands = kTiles.bands;
  static constexpr int kThreads = kTiles.threads(), kStages = 2;
  using Element = T;
  using Own = SharedRows<T, kDim>;
  using Other = SharedRows<T, kDim>;
};

// A block of keys and what it adds up, over all heads that share them.
template <class T, int kDim, bool kPlain>
struct KeyGradBlock {
  using Config = KeyGradConfig<T, kDim, kPlain>;
  using Block = KeyBlock<Config>;
  static constexpr TensorTiles kTiles = Config::kTiles;
  static constexpr int kRows = Config::kRows, kColumns = Config::kColumns;
  static constexpr int kBands = Config::kBands;

  Block block;
  Band<kDim> key_sums[kBands], value_sums[kBands];

  __device__ __forceinline__ static int row() {
    return static_cast<int>(threadIdx.x) / kWarp * kBands * 16;
  }
  __device__ __forceinline__ void Clear() {
#pragma unroll
    for (int b = 0; b < kBands; ++b) key_sums[b].Clear(), value_sums[b].Clear();
  }

  // Probabilities after dropout and gradients of scores of a tile. False: the warp's keys see none
  // of it.
  __device__ __forceinline__ bool ScoreTile(const QueryTile& tile, int stage,
                                            Band<kColumns> (&scores)[kBands],
                                            Band<kColumns> (&d_p)[kBands]) const {
    const auto mask =
        TileMask<Side::kKeys>::Of(block.tiles[tile.t], ViewOf(block.use, Opaque(block.at.b)),
                                  block.at.first, tile.t * kColumns);
    if (mask.Hides(row(), kBands * 16, kColumns)) return false;
    DotRows(block.keys, row(), block.pairs.First(stage), scores);
    DotRows(block.values, row(), block.pairs.Second(stage), d_p);
    const AttentionDrops drops = kPlain ? AttentionDrops{} : DropsOf(block.use, block.at.b, tile.h);
    const float* const powers = block.statistics.Powers(stage) + BandColumn();
    const float* const deltas = block.statistics.Deltas(stage) + BandColumn();
#pragma unroll
    for (int b = 0; b < kBands; ++b) {
      const int key = block.at.first + row() + 16 * b, query = tile.t * kColumns;
      if (!kPlain && block.use.shape.cap != 0.0f) CapBand(block.use.shape, &scores[b]);
      mask.Apply(ViewOf(block.use, Opaque(block.at.b)), block.at.first, row() + 16 * b, query,
                 &scores[b]);
      GradientsOfBand<kPlain>(
          block.use, [&](int n, int i) { return powers[8 * n + i % 2]; },
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
    AddRows(scores, block.pairs.Second(stage), value_sums);
    AddRows(d_p, block.pairs.First(stage), key_sums);
  }

  __device__ __forceinline__ void End(T* d_k, T* d_v) {
#pragma unroll
    for (int b = 0; b < kBands; ++b) {
      block.Put(row() + 16 * b, &key_sums[b], value_sums[b], d_k, d_v);
    }
  }
};

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_ATTENTION_ATTENTION_TENSOR_KEY_GRAD_H_
