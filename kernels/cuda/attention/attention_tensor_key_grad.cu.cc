// Deltas, and gradients of attention with respect to keys and values, on tensor cores.
#include "kernels/cuda/attention/attention_tensor_grad.h"
#include "kernels/cuda/attention/attention_tensor_shape.h"

namespace mgc::cuda {
namespace {

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

  __device__ __forceinline__ void AddTile(const QueryTile& tile, int stage) {
    const auto mask = TileMask<Side::kKeys>::Of(tiles[tile.t], ViewOf(use, Opaque(at.b)), at.first,
                                                tile.t * kColumns);
    if (mask.Hides(row, kBands * 16, kColumns)) return;
    Band<kColumns> scores[kBands], d_p[kBands];
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

template <class T, int kDim, bool kPlain>
__global__ void __launch_bounds__(KeyGradTiles(kDim, kPlain).threads())
    TensorKeyGradKernel(AttentionUse use, AttentionOperands<T> in, AttentionResults<T> results,
                        T* d_q, T* d_k, T* d_v) {
  using Block = KeyGradBlock<T, kDim, kPlain>;
  T* const shared = reinterpret_cast<T*>(SharedBytes());
  T* const staged = shared + 2 * Block::kRows * kDim;
  float* const columns = reinterpret_cast<float*>(staged + decltype(Block::pairs)::kElements);
  const int row = static_cast<int>(threadIdx.x) / kWarp * Block::kBands * 16;
  Block block = {use,
                 in,
                 results,
                 d_q,
                 HeadPlaceOf(use.shape.keys, use.shape.kv_heads, Block::kRows),
                 row,
                 {shared},
                 {shared + Block::kRows * kDim},
                 {staged},
                 {columns, 0.0f, 0.0f},
                 reinterpret_cast<Tile*>(columns + 4 * Block::kColumns),
                 {},
                 {}};
  block.Begin();
  QueryTile tile = block.First();
  int stage = 0;
  block.Start(tile, stage);
  block.statistics.Put(stage);
  for (; block.Has(tile); stage ^= 1) {
    WaitCopies<0>();
    __syncthreads();  // the tile is there, and nobody reads the one before
    const QueryTile next = block.After(tile);
    block.Start(next, stage ^ 1);
    block.AddTile(tile, stage);
    block.statistics.Put(stage ^ 1);
    tile = next;
  }
  WaitCopies<0>();
  block.End(d_k, d_v);
}

template <class T, int kDim, bool kPlain>
int Issue(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
          const AttentionResults<T>& results, const AttentionGradients<T>& out) {
  const AttentionShape& s = use.shape;
  const int64_t rows = s.batch * s.queries * s.heads;
  constexpr int kDeltaRows = kDeltaThreads / (kDim / 8);
  const int error = Launch(DeltaKernel<T, kDim>,
                           ShapeForRows((rows + kDeltaRows - 1) / kDeltaRows, kDeltaThreads),
                           stream, rows, static_cast<int>(s.dim), results.d_o, results.o, out.d_q);
  if (error != 0) return error;
  return Launch(
      TensorKeyGradKernel<T, kDim, kPlain>,
      TensorShape(KeyGradTiles(kDim, kPlain), kDim, s.keys, s.batch * s.kv_heads, s.queries),
      stream, use, in, results, out.d_q, out.d_k, out.d_v);
}

template <class T, int kDim>
int ForKind(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
            const AttentionResults<T>& results, const AttentionGradients<T>& out) {
  return IsPlain(use.shape, use.dropout) ? Issue<T, kDim, true>(stream, use, in, results, out)
                                         : Issue<T, kDim, false>(stream, use, in, results, out);
}

}  // namespace

template <class T>
int TensorKeyGrad(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
                  const AttentionResults<T>& results, const AttentionGradients<T>& out) {
  return TensorDim(use.shape.dim) == 64 ? ForKind<T, 64>(stream, use, in, results, out)
                                        : ForKind<T, 128>(stream, use, in, results, out);
}

#define MGC_INSTANTIATE(T)                                                                \
  template int TensorKeyGrad<T>(Stream, const AttentionUse&, const AttentionOperands<T>&, \
                                const AttentionResults<T>&, const AttentionGradients<T>&)
MGC_INSTANTIATE(Bfloat16);
MGC_INSTANTIATE(Float16);
#undef MGC_INSTANTIATE

}  // namespace mgc::cuda
