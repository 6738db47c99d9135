// Attention by warpgroups. See attention_group.h for who owns what.
//
// A block has its queries of one head in shared memory, and two tiles of keys and two of values:
// one in use, the next one on its way. While a warpgroup makes the scores of a tile probabilities,
// those of the tile before are multiplied with their values.
#include "kernels/cuda/attention/attention_group.h"

#include "kernels/cuda/attention/attention_tensor_forward.h"

namespace mgc::cuda {
namespace {

// A block of queries.
template <class T, int kDim, bool kPlain>
struct ForwardBlock {
  static constexpr GroupTiles kTiles = GroupForwardTiles(kDim, kPlain);
  static constexpr int kRows = kTiles.rows(), kColumns = kTiles.columns;
  static constexpr int kThreads = kTiles.threads();
  using Own = GroupRows<T, kDim, kRows>;
  using Other = GroupRows<T, kDim, kColumns>;

  const AttentionUse& use;
  const AttentionOperands<T>& in;
  HeadPlace at;
  Own queries;
  T* staged;
  Tile* tiles;

  __device__ __forceinline__ int count() const {
    return static_cast<int>((use.shape.keys + kColumns - 1) / kColumns);
  }
  __device__ __forceinline__ int dim() const { return static_cast<int>(use.shape.dim); }
  __device__ __forceinline__ Other Keys(int stage) const {
    return {staged + stage * 2 * Other::kElements};
  }
  __device__ __forceinline__ Other Values(int stage) const {
    return {Keys(stage).at + Other::kElements};
  }
  __device__ __forceinline__ static int Row() { return static_cast<int>(threadIdx.x) / kWarp * 16; }

  // The copy of a tile of k or v, where there is one.
  __device__ __forceinline__ void Start(const Other& to, const T* x, int t) const {
    const AttentionShape& s = use.shape;
    if (t >= count()) return;
    const int b = Opaque(at.b), kv_head = at.h / static_cast<int>(s.heads / s.kv_heads);
    StartCopy<kColumns, kThreads>(to, KeyRows(s, x, b, kv_head), t * kColumns, dim());
  }

  __device__ __forceinline__ TileMask<Side::kQueries> MaskOf(int t) const {
    return TileMask<Side::kQueries>::Of(tiles[t], ViewOf(use, Opaque(at.b)), at.first,
                                        t * kColumns);
  }
  // Scores of a tile become probabilities; `shrink` as BandSoftmax has it.
  __device__ __forceinline__ bool Weigh(int t, Band<kColumns>* scores, BandSoftmax* softmax,
                                        float (&shrink)[2]) const {
    if (!kPlain && use.shape.cap != 0.0f) CapBand(use.shape, scores);
    MaskOf(t).Apply(ViewOf(use, Opaque(at.b)), at.first, Row(), t * kColumns, scores);
    const bool grew = softmax->Step(ExponentScale(use.shape), scores, shrink);
    if (!kPlain && use.drops()) {
      DropBand(DropsOf(use, at.b, at.h), at.first + Row(), t * kColumns, scores);
    }
    return grew;
  }

  // All tiles that the queries see.
  __device__ __forceinline__ void AddTiles(Band<kDim>* sums, BandSoftmax* softmax) const {
    int t = NextTile(tiles, 0, count()), stage = 0;
    Start(Keys(stage), in.k, t);
    CommitCopies();
    if (t >= count()) return;
    Band<kColumns> scores;
    float shrink[2];
    WaitCopies<0>();
    PublishShared();
    __syncthreads();  // the first keys are there
    int next = NextTile(tiles, t + 1, count());
    Start(Keys(stage ^ 1), in.k, next);
    Start(Values(stage), in.v, t);
    CommitCopies();
    StartDots(queries, GroupRow(), Keys(stage), &scores);
    Await<0>(scores);
    Weigh(t, &scores, softmax, shrink);
    auto weights = PackedBand<kColumns>::template Of<T>(scores);
    for (; next < count(); stage ^= 1) {
      WaitCopies<0>();
      PublishShared();
      // The values and the next keys are there; nobody reads these keys and the values before.
      __syncthreads();
      const int after = NextTile(tiles, next + 1, count());
      Start(Keys(stage), in.k, after);
      Start(Values(stage ^ 1), in.v, next);
      CommitCopies();
      StartDots(queries, GroupRow(), Keys(stage ^ 1), &scores);
      StartSums(&weights, Values(stage), sums);
      Await<1>(scores);
      const bool grew = Weigh(next, &scores, softmax, shrink);
      Await<0>(weights, *sums);
      if (__any_sync(kWholeWarp, grew)) Scale(shrink, sums);
      weights = PackedBand<kColumns>::template Of<T>(scores);
      next = after;
    }
    WaitCopies<0>();
    PublishShared();
    __syncthreads();  // the last values are there
    StartSums(&weights, Values(stage), sums);
    Await<0>(weights, *sums);
  }
};

template <class T, int kDim, bool kPlain>
__global__ void __launch_bounds__(ThreadsOfGroups(GroupForwardTiles(kDim, kPlain).threads()),
                                  GroupForwardTiles(kDim, kPlain).blocks)
    GroupAttendKernel(AttentionUse use, AttentionOperands<T> in, T* o, float* lse) {
  using Block = ForwardBlock<T, kDim, kPlain>;
  const AttentionShape& s = use.shape;
  T* const shared = reinterpret_cast<T*>(SharedBytes());
  T* const staged = shared + Block::Own::kElements;
  const Block block = {
      use,      in,     HeadPlaceOf(s.queries, s.heads, Block::kRows),
      {shared}, staged, reinterpret_cast<Tile*>(staged + 4 * Block::Other::kElements)};
  const HeadPlace& at = block.at;
  StartCopy<Block::kRows, Block::kThreads>(block.queries, QueryRows(s, in.q, at.b, at.h), at.first,
                                           block.dim());
  ClassifyTiles<Side::kQueries>(ViewOf(use, at.b), at.first, Block::kRows, Block::kColumns,
                                block.tiles);
  Band<kDim> sums;
  BandSoftmax softmax;
  sums.Clear();
  __syncthreads();
  block.AddTiles(&sums, &softmax);
  WaitCopies<0>();
  const int row = Block::Row();
  __syncthreads();  // nobody reads the queries, where the results go through
  PutBand(block.queries, row, softmax, s.cap == 0.0f ? s.scale : 1.0f, at.first + row, block.dim(),
          QueryRows(s, o, at.b, at.h), lse + (at.b * s.heads + at.h) * s.queries, &sums);
}

template <class T, int kDim, bool kPlain>
int Attend(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in, T* o,
           float* lse) {
  const AttentionShape& s = use.shape;
  return Launch(GroupAttendKernel<T, kDim, kPlain>,
                GroupShape(GroupForwardTiles(kDim, kPlain), GroupForwardBytes(kDim, kPlain),
                           s.queries, s.batch * s.heads, s.keys),
                stream, use, in, o, lse);
}

}  // namespace

bool HasGroupKernels() { return TakesGroups(GroupAttendKernel<Bfloat16, 64, true>); }

template <class T>
int GroupAttention(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in, T* o,
                   float* lse) {
  return ForKind(use.shape, use.dropout, [&](auto dim, auto plain) {
    return Attend<T, decltype(dim)::value, decltype(plain)::value>(stream, use, in, o, lse);
  });
}

template int GroupAttention(Stream, const AttentionUse&, const AttentionOperands<Bfloat16>&,
                            Bfloat16*, float*);
template int GroupAttention(Stream, const AttentionUse&, const AttentionOperands<Float16>&,
                            Float16*, float*);

}  // namespace mgc::cuda
