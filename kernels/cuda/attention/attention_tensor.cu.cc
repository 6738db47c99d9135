// Attention on tensor cores. See attention_tensor.h for who owns what.
//
// A block has ForwardTiles().rows() queries of one head in shared memory. Tiles of keys and of
// values come one behind the other: values while the scores are computed, the next keys during
// softmax and the product with the values.
#include "kernels/cuda/attention/attention_tensor_forward.h"
#include "kernels/cuda/attention/attention_tensor_shape.h"

namespace mgc::cuda {
namespace {

constexpr int kColumns = ForwardTiles(true).columns;
static_assert(kColumns == ForwardTiles(false).columns);

// The queries of a block, and what the loop over keys leaves of them.
template <int kDim, int kBands>
struct ForwardState {
  Band<kDim> sums[kBands];
  BandSoftmax softmax[kBands];
};

// Scores of one tile become probabilities, and the sums shrink to the new maxima.
// The warp's queries are those of the block from `first` on.
template <bool kPlain, int kDim, int kBands>
__device__ __forceinline__ void SoftmaxTile(const AttentionUse& use, const HeadPlace& at,
                                            const TileMask<Side::kQueries>& mask, int first,
                                            int key, Band<kColumns> (&scores)[kBands],
                                            ForwardState<kDim, kBands>* state) {
  const float exponent = ExponentScale(use.shape);
#pragma unroll
  for (int b = 0; b < kBands; ++b) {
    const int row = first + 16 * b;
    if (!kPlain && use.shape.cap != 0.0f) CapBand(use.shape, &scores[b]);
    mask.Apply(ViewOf(use, Opaque(at.b)), at.first, row, key, &scores[b]);
    float shrink[2];
    const bool grew = state->softmax[b].Step(exponent, &scores[b], shrink);
    if (__any_sync(kWholeWarp, grew)) Scale(shrink, &state->sums[b]);
    if (!kPlain && use.drops()) DropBand(DropsOf(use, at.b, at.h), at.first + row, key, &scores[b]);
  }
}

template <class T, int kDim, bool kPlain>
__global__ void __launch_bounds__(ForwardTiles(kPlain).threads())
    TensorAttendKernel(AttentionUse use, AttentionOperands<T> in, T* o, float* lse) {
  constexpr TensorTiles kTiles = ForwardTiles(kPlain);
  constexpr int kRows = kTiles.rows(), kBands = kTiles.bands, kThreads = kTiles.threads();
  using Shared = SharedRows<T, kDim>;
  const AttentionShape& s = use.shape;
  const int dim = static_cast<int>(s.dim);
  const HeadPlace at = HeadPlaceOf(s.queries, s.heads, kRows);
  const int count = static_cast<int>((s.keys + kColumns - 1) / kColumns);
  const int kv_head = at.h / static_cast<int>(s.heads / s.kv_heads);
  const Shared queries = {reinterpret_cast<T*>(SharedBytes())};
  const Shared keys = {queries.at + kRows * kDim}, values = {keys.at + kColumns * kDim};
  Tile* const tiles = reinterpret_cast<Tile*>(values.at + kColumns * kDim);
  StartCopy<kRows, kThreads>(queries, QueryRows(s, in.q, at.b, at.h), at.first, dim);
  ClassifyTiles<Side::kQueries>(ViewOf(use, at.b), at.first, kRows, kColumns, tiles);
  __syncthreads();
  const auto start = [&](const Shared& to, const T* x, int tile) {
    if (tile < count) {
      const auto rows = KeyRows(s, x, Opaque(at.b), Opaque(kv_head));
      StartCopy<kColumns, kThreads>(to, rows, tile * kColumns, dim);
    }
    CommitCopies();
  };
  int t = NextTile(tiles, 0, count);
  start(keys, in.k, t);
  const int row = static_cast<int>(threadIdx.x) / kWarp * kBands * 16;
  ForwardState<kDim, kBands> state;
#pragma unroll
  for (auto& band : state.sums) band.Clear();
  while (t < count) {
    WaitCopies<0>();
    __syncthreads();  // the keys are there, and nobody reads the values before
    start(values, in.v, t);
    Band<kColumns> scores[kBands];
    const auto mask =
        TileMask<Side::kQueries>::Of(tiles[t], ViewOf(use, Opaque(at.b)), at.first, t * kColumns);
    const bool hidden = mask.Hides(row, kBands * 16, kColumns);
    if (!hidden) DotRows(queries, row, keys, scores);
    WaitCopies<0>();
    __syncthreads();  // the values are there, and nobody reads the keys
    const int next = NextTile(tiles, t + 1, count);
    start(keys, in.k, next);
    if (!hidden) {
      SoftmaxTile<kPlain>(use, at, mask, row, t * kColumns, scores, &state);
      AddRows(scores, values, state.sums);
    }
    t = next;
  }
  WaitCopies<0>();
  const float unit = s.cap == 0.0f ? s.scale : 1.0f;
#pragma unroll
  for (int b = 0; b < kBands; ++b) {
    PutBand(queries, row + 16 * b, state.softmax[b], unit, at.first + row + 16 * b, dim,
            QueryRows(s, o, at.b, at.h), lse + (at.b * s.heads + at.h) * s.queries, &state.sums[b]);
  }
}

template <class T, int kDim, bool kPlain>
int Attend(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in, T* o,
           float* lse) {
  const AttentionShape& s = use.shape;
  return Launch(TensorAttendKernel<T, kDim, kPlain>,
                TensorShape(ForwardTiles(kPlain), kDim, s.queries, s.batch * s.heads, s.keys),
                stream, use, in, o, lse);
}

}  // namespace

template <class T>
int TensorAttention(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in, T* o,
                    float* lse) {
  return ForKind(use.shape, use.dropout, [&](auto dim, auto plain) {
    return Attend<T, decltype(dim)::value, decltype(plain)::value>(stream, use, in, o, lse);
  });
}

template int TensorAttention(Stream, const AttentionUse&, const AttentionOperands<Bfloat16>&,
                             Bfloat16*, float*);
template int TensorAttention(Stream, const AttentionUse&, const AttentionOperands<Float16>&,
                             Float16*, float*);

}  // namespace mgc::cuda
