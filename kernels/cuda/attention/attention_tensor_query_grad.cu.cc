// Gradients of attention with respect to queries, on tensor cores.
#include "kernels/cuda/attention/attention_tensor_grad.h"
#include "kernels/cuda/attention/attention_tensor_shape.h"

namespace mgc::cuda {
namespace {

// A block of queries and what it adds up.
template <class T, int kDim, bool kPlain>
struct QueryGradBlock {
  static constexpr TensorTiles kTiles = QueryGradTiles(kDim, kPlain);
  static constexpr int kRows = kTiles.rows(), kColumns = kTiles.columns, kBands = kTiles.bands;
  static constexpr int kThreads = kTiles.threads();

  const AttentionUse& use;
  const AttentionOperands<T>& in;
  HeadPlace at;
  int row;  // the warp's first, of the block's
  SharedRows<T, kDim> queries, d_os;
  StagedPairs<T, SharedRows<T, kDim>, kColumns> pairs;
  Tile* tiles;
  float power[kBands][2], delta[kBands][2];
  Band<kDim> sums[kBands];

  __device__ __forceinline__ int count() const {
    return static_cast<int>((use.shape.keys + kColumns - 1) / kColumns);
  }
  __device__ __forceinline__ int dim() const { return static_cast<int>(use.shape.dim); }

  // The copy of a tile of k and v, where there is one.
  __device__ __forceinline__ void Start(int t, int stage) const {
    const AttentionShape& s = use.shape;
    if (t < count()) {
      const int b = Opaque(at.b), kv_head = at.h / static_cast<int>(s.heads / s.kv_heads);
      const int key = t * kColumns;
      StartCopy<kColumns, kThreads>(pairs.First(stage), KeyRows(s, in.k, b, kv_head), key, dim());
      StartCopy<kColumns, kThreads>(pairs.Second(stage), KeyRows(s, in.v, b, kv_head), key, dim());
    }
    CommitCopies();
  }

  // The block's own operands and statistics; which tiles it sees.
  __device__ __forceinline__ void Begin(const AttentionResults<T>& results, T* d_q) {
    const AttentionShape& s = use.shape;
    StartCopy<kRows, kThreads>(queries, QueryRows(s, in.q, at.b, at.h), at.first, dim());
    StartCopy<kRows, kThreads>(d_os, QueryRows(s, results.d_o, at.b, at.h), at.first, dim());
    ClassifyTiles<Side::kQueries>(ViewOf(use, at.b), at.first, kRows, kColumns, tiles);
    const auto gradients = QueryRows(s, d_q, at.b, at.h);
    const float* const lse = results.lse + (at.b * s.heads + at.h) * s.queries;
#pragma unroll
    for (int e = 0; e < kBands * 2; ++e) {
      const int i = at.first + row + 8 * e + BandRow();
      power[e / 2][e % 2] = i < gradients.count ? PowerOf(lse[i]) : INFINITY;
      delta[e / 2][e % 2] = i < gradients.count ? DeltaOf(gradients[i]) : 0.0f;
    }
#pragma unroll
    for (auto& band : sums) band.Clear();
    __syncthreads();
  }

  __device__ __forceinline__ void AddTile(int t, int stage) {
    const auto mask =
        TileMask<Side::kQueries>::Of(tiles[t], ViewOf(use, Opaque(at.b)), at.first, t * kColumns);
    if (mask.Hides(row, kBands * 16, kColumns)) return;
    Band<kColumns> scores[kBands], d_p[kBands];
    DotRows(queries, row, pairs.First(stage), scores);
    DotRows(d_os, row, pairs.Second(stage), d_p);
#pragma unroll
    for (int b = 0; b < kBands; ++b) {
      const int query = at.first + row + 16 * b, key = t * kColumns;
      if (!kPlain && use.shape.cap != 0.0f) CapBand(use.shape, &scores[b]);
      mask.Apply(ViewOf(use, Opaque(at.b)), at.first, row + 16 * b, key, &scores[b]);
      const AttentionDrops drops = kPlain ? AttentionDrops{} : DropsOf(use, at.b, at.h);
      GradientsOfBand<kPlain>(
          use, [&](int, int i) { return power[b][i / 2]; },
          [&](int, int i) { return delta[b][i / 2]; },
          [&](int n, float(&kept)[4]) {
            KeptOfBlock<Side::kQueries>(drops, query, key + 8 * n, kept);
          },
          &scores[b], &d_p[b]);
    }
    AddRows(d_p, pairs.First(stage), sums);
  }

  __device__ __forceinline__ void End(T* d_q) {
    const AttentionShape& s = use.shape;
    const float scales[2] = {s.scale, s.scale};
#pragma unroll
    for (int b = 0; b < kBands; ++b) {
      const int band = row + 16 * b;
      Scale(scales, &sums[b]);
      PutRowsOfBand(queries, band, sums[b], at.first + band, dim(), QueryRows(s, d_q, at.b, at.h));
    }
  }
};

template <class T, int kDim, bool kPlain>
__global__ void __launch_bounds__(QueryGradTiles(kDim, kPlain).threads())
    TensorQueryGradKernel(AttentionUse use, AttentionOperands<T> in, AttentionResults<T> results,
                          T* d_q) {
  using Block = QueryGradBlock<T, kDim, kPlain>;
  T* const shared = reinterpret_cast<T*>(SharedBytes());
  T* const staged = shared + 2 * Block::kRows * kDim;
  const int row = static_cast<int>(threadIdx.x) / kWarp * Block::kBands * 16;
  Block block = {use,
                 in,
                 HeadPlaceOf(use.shape.queries, use.shape.heads, Block::kRows),
                 row,
                 {shared},
                 {shared + Block::kRows * kDim},
                 {staged},
                 reinterpret_cast<Tile*>(staged + decltype(Block::pairs)::kElements),
                 {},
                 {},
                 {}};
  block.Begin(results, d_q);
  const int count = block.count();
  int t = NextTile(block.tiles, 0, count), stage = 0;
  block.Start(t, stage);
  for (; t < count; stage ^= 1) {
    WaitCopies<0>();
    __syncthreads();  // the tile is there, and nobody reads the one before
    const int next = NextTile(block.tiles, t + 1, count);
    block.Start(next, stage ^ 1);
    block.AddTile(t, stage);
    t = next;
  }
  WaitCopies<0>();
  block.End(d_q);
}

template <class T, int kDim, bool kPlain>
int Issue(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
          const AttentionResults<T>& results, T* d_q) {
  const AttentionShape& s = use.shape;
  return Launch(
      TensorQueryGradKernel<T, kDim, kPlain>,
      TensorShape(QueryGradTiles(kDim, kPlain), kDim, s.queries, s.batch * s.heads, s.keys), stream,
      use, in, results, d_q);
}

}  // namespace

template <class T>
int TensorQueryGrad(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
                    const AttentionResults<T>& results, T* d_q) {
  return ForKind(use.shape, use.dropout, [&](auto dim, auto plain) {
    return Issue<T, decltype(dim)::value, decltype(plain)::value>(stream, use, in, results, d_q);
  });
}

#define MGC_INSTANTIATE(T)                                                                  \
  template int TensorQueryGrad<T>(Stream, const AttentionUse&, const AttentionOperands<T>&, \
                                  const AttentionResults<T>&, T*)
MGC_INSTANTIATE(Bfloat16);
MGC_INSTANTIATE(Float16);
#undef MGC_INSTANTIATE

}  // namespace mgc::cuda
