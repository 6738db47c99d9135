// All gradients of attention in one pass over the pairs, by warpgroups: five products, where a pass
// for keys and one for queries make seven, and one draw of dropout's bits instead of two.
//
// The blocks of keys of a head are cut into parts, one for each block of threads, which goes
// through its blocks of keys one after the other. What it adds up of the queries' gradients stands
// in f32 in its part of the workspace, tile by tile as threads hold it; an element is one thread's,
// so the order is that of the keys. The parts are added in order behind it.
#include "kernels/cuda/api.h"
#include "kernels/cuda/attention/attention_group.h"
#include "kernels/cuda/attention/attention_tensor_key_grad.h"

namespace mgc::cuda {
namespace {

constexpr GroupTiles kTiles = GroupGradTiles();
constexpr int kKeys = kTiles.rows(), kQueries = kTiles.columns, kThreads = kTiles.threads();

// How warpgroups take a block of keys.
template <class T, int kDim>
struct GroupConfig {
  static constexpr int kRows = kKeys, kColumns = kQueries, kThreads = kTiles.threads();
  static constexpr int kStages = kGroupGradStages;
  using Element = T;
  using Own = GroupRows<T, kDim, kKeys>;
  using Other = GroupRows<T, kDim, kQueries>;
};

// Gradients of the scores of a block's keys with a tile of queries, which the warpgroups that have
// the keys hand to those that make the queries' gradients: 32 queries of all keys lie together, a
// key in 64 bytes.
template <class T>
struct SpreadScores {
  static constexpr int kHalf = 32, kChunk = 8, kElements = kKeys * kQueries;
  static constexpr int kLine = 2 * kHalf, kStride = 8 * kLine, kLeading = kKeys * kLine;
  T* at;

  // A warp's keys, from the block's `row` on.
  __device__ __forceinline__ void Put(int row, const PackedBand<kQueries>& band) const {
#pragma unroll
    for (int n = 0; n < kQueries / 8; ++n) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int key = row + BandRow() + 8 * r;
        T* const to = at + n / 4 * (kKeys * kHalf) + SwizzledHalfChunk(key, n % 4) * kChunk;
        *reinterpret_cast<uint32_t*>(to + BandColumn()) = band.at[n / 2].at[n % 2 * 2 + r];
      }
    }
  }
  // Keys [16 step, 16 step + 16) as the depth, the queries from 32 · half on across.
  __device__ __forceinline__ SharedMatrix<true> Across(int step, int half) const {
    return {at + half * (kKeys * kHalf) + step * (16 * kHalf), {kLine, true, kStride, kLeading}};
  }
};

// A thread's share of a tile of queries' gradients, transposed: a warpgroup has 64 dims of all
// queries, or, where there are no more dims, of half of the queries.
template <int kDim>
struct QueryShare {
  static constexpr int kDims = 64, kWide = kDim / kDims;  // groups side by side along dims
  static constexpr int kColumns = kQueries / (kTiles.groups / kWide);
  static constexpr int kBlocks = kColumns / 8;
  using Four = Vector<float, 4>;

  struct Cell {
    int query, dim;
  };
  // Of the tile: register i of block n of a thread.
  __device__ __forceinline__ static Cell CellOf(int thread, int n, int i) {
    const int group = thread / kWarpgroup, warp = thread / kWarp % 4;
    const MatrixCell at = SumCell(thread % kWarp, i);
    return {group / kWide * kColumns + 8 * n + at.column,
            group % kWide * kDims + 16 * warp + at.row};
  }
  // Where a thread's block n of a tile stands.
  __device__ __forceinline__ static Four* Place(float* tile, int n) {
    return reinterpret_cast<Four*>(tile) + n * kThreads + static_cast<int>(threadIdx.x);
  }

  // Starts sums = the block's keys times the gradients of their scores, both transposed.
  template <class T>
  __device__ __forceinline__ static void Start(const GroupRows<T, kDim, kKeys>& keys,
                                               const SpreadScores<T>& scores,
                                               Band<kColumns>* sums) {
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup;
    Settle(*sums);
    BeginProducts();
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step) {
      StartProduct<T>(keys.Across(step, group % kWide), scores.Across(step, group / kWide),
                      step > 0, sums->at);
    }
    CommitProducts();
  }
};

// What a tile's scores become, on their way.
struct TileScores {
  Band<kQueries> scores, d_p;
};

// A block of keys of one head.
template <class T, int kDim, bool kPlain>
struct GradBlock {
  // Whether the scores of a tile are started while those of the tile before are still used: for 128
  // dims there are too few registers.
  static constexpr bool kAhead = kDim == 64;
  using Keys = KeyBlock<GroupConfig<T, kDim>>;
  using Share = QueryShare<kDim>;
  Keys& block;
  SpreadScores<T> spread;
  float* query_sums;  // of the part

  __device__ __forceinline__ static int Row() { return static_cast<int>(threadIdx.x) / kWarp * 16; }
  __device__ __forceinline__ static int After(int stage) { return stage == 2 ? 0 : stage + 1; }

  // The float that a tile's sums begin at.
  __device__ __forceinline__ float* SumsOf(const QueryTile& tile) const {
    const AttentionShape& s = block.use.shape;
    return query_sums + (Opaque(block.at.b) * s.heads + tile.h) * QuerySumsOfHead(s.queries, kDim) +
           static_cast<int64_t>(tile.t) * (kQueries * kDim);
  }

  // Two groups of products; of those of a tile ahead all is waited for before the tile's turn.
  __device__ __forceinline__ void StartScores(int stage, TileScores* to) const {
    StartDots(block.keys, GroupRow(), block.pairs.First(stage), &to->scores);
    StartDots(block.values, GroupRow(), block.pairs.Second(stage), &to->d_p);
  }

  // Scores become probabilities and gradients, of which the sums of keys and values are started.
  __device__ __forceinline__ void StartTile(const QueryTile& tile, int stage, TileScores* of,
                                            PackedBand<kQueries>* weights,
                                            PackedBand<kQueries>* gradients, Band<kDim>* key_sums,
                                            Band<kDim>* value_sums) const {
    const AttentionUse& use = block.use;
    const float* const powers = block.statistics.Powers(stage) + BandColumn();
    const float* const deltas = block.statistics.Deltas(stage) + BandColumn();
    const int key = block.at.first + Row(), query = tile.t * kQueries;
    const auto power_of = [&](int n, int i) { return powers[8 * n + i % 2]; };
    const auto delta_of = [&](int n, int i) { return deltas[8 * n + i % 2]; };
    const auto mask = TileMask<Side::kKeys>::Of(
        block.tiles[tile.t], ViewOf(use, Opaque(block.at.b)), block.at.first, query);
    if (!kAhead) Await<1>(of->scores);
    if (!kPlain && use.shape.cap != 0.0f) CapBand(use.shape, &of->scores);
    mask.Apply(ViewOf(use, Opaque(block.at.b)), block.at.first, Row(), query, &of->scores);
    if constexpr (kPlain) {
      Normalize(ExponentScale(use.shape), power_of, &of->scores);
    } else {
      if (!kAhead) Await<0>(of->d_p);
      const AttentionDrops drops = DropsOf(use, block.at.b, tile.h);
      GradientsOfBand<false>(
          use, power_of, delta_of,
          [&](int n, float(&kept)[4]) {
            KeptOfBlock<Side::kKeys>(drops, key, query + 8 * n, kept);
          },
          &of->scores, &of->d_p);
    }
    *weights = PackedBand<kQueries>::template Of<T>(of->scores);
    StartSums(weights, block.pairs.Second(stage), value_sums);
    if constexpr (kPlain) {
      if (!kAhead) Await<1>(of->d_p);
      BendPlain(of->scores, delta_of, &of->d_p);
    }
    *gradients = PackedBand<kQueries>::template Of<T>(of->d_p);
    StartSums(gradients, block.pairs.First(stage), key_sums);
  }

  // All that follows from a tile, which is in `stage`; `next` is in the stage behind it by the end,
  // and the one after that on its way. kLast: there is no next.
  template <bool kLast>
  __device__ __forceinline__ void AddTile(const QueryTile& tile, const QueryTile& next, int stage,
                                          TileScores* of, Band<kDim>* key_sums,
                                          Band<kDim>* value_sums) {
    if (!kAhead) StartScores(stage, of);
    PackedBand<kQueries> weights, gradients;
    StartTile(tile, stage, of, &weights, &gradients, key_sums, value_sums);
    __syncthreads();  // nobody reads what was spread before, and the tile before
    const int free = After(After(stage));
    if (!kLast) block.Start(block.After(next), free);
    spread.Put(Row(), gradients);
    WaitCopies<kLast ? 0 : 1>();
    PublishShared();
    __syncthreads();  // the gradients of all keys' scores are there, and the next tile
    Band<Share::kColumns> sums;
    Share::Start(block.keys, spread, &sums);
    if (kAhead && !kLast) StartScores(After(stage), of);
    Await<kAhead && !kLast ? 2 : 0>(sums, weights, gradients, *key_sums, *value_sums);
    float* const to = SumsOf(tile);
#pragma unroll
    for (int n = 0; n < Share::kBlocks; ++n) AddTo(Share::Place(to, n), sums.at[n]);
    if (!kLast) block.statistics.Put(free);
    if (kAhead && !kLast) Await<0>(of->scores, of->d_p);
  }

  // All tiles that see the keys.
  __device__ __forceinline__ void AddTiles(Band<kDim>* key_sums, Band<kDim>* value_sums) {
    block.Begin();
    QueryTile tile = block.First();
    block.Start(tile, 0);
    if (!block.Has(tile)) {
      WaitCopies<0>();
      return;
    }
    QueryTile next = block.After(tile);
    block.statistics.Put(0);
    block.Start(next, 1);
    block.statistics.Put(1);
    WaitCopies<1>();
    PublishShared();
    __syncthreads();  // the keys and the first tile are there
    TileScores scores;
    int stage = 0;
    if (kAhead) {
      StartScores(stage, &scores);
      Await<0>(scores.scores, scores.d_p);
    }
    for (; block.Has(next); stage = After(stage)) {
      AddTile<false>(tile, next, stage, &scores, key_sums, value_sums);
      tile = next;
      next = block.After(next);
    }
    AddTile<true>(tile, next, stage, &scores, key_sums, value_sums);
  }
};

// Which block of keys is the `round`th of a part: parts take turns forwards and backwards, so that
// they have as much to do where later keys are seen by fewer queries.
__device__ __forceinline__ int KeyBlockOf(int part, int parts, int round) {
  return round * parts + (round % 2 == 0 ? part : parts - 1 - part);
}

template <class T, int kDim, bool kPlain>
__global__ void __launch_bounds__(ThreadsOfGroups(kThreads), 1)
    GroupGradKernel(AttentionUse use, AttentionOperands<T> in, AttentionResults<T> results,
                    int parts, T* d_q, T* d_k, T* d_v, float* query_sums) {
  using Block = GradBlock<T, kDim, kPlain>;
  const AttentionShape& s = use.shape;
  const int head = static_cast<int>(blockIdx.x) / parts,
            part = static_cast<int>(blockIdx.x) % parts;
  const int kv_heads = static_cast<int>(s.kv_heads);
  auto keys = KeyBlockAt<GroupConfig<T, kDim>>(
      use, in, results, d_q, {0, head / kv_heads, head % kv_heads}, SpreadScores<T>::kElements);
  const SpreadScores<T> spread = {keys.pairs.at + decltype(keys.pairs)::kElements};
  float* const sums = query_sums + part * (s.batch * s.heads * QuerySumsOfHead(s.queries, kDim));
  for (int round = 0; round * parts * kKeys < s.keys; ++round) {
    keys.at.first = KeyBlockOf(part, parts, round) * kKeys;
    if (keys.at.first >= s.keys) continue;
    Band<kDim> key_sums, value_sums;
    key_sums.Clear();
    value_sums.Clear();
    Block{keys, spread, sums}.AddTiles(&key_sums, &value_sums);
    __syncthreads();  // nobody reads the keys, where the results go through
    keys.Put(Block::Row(), &key_sums, value_sums, d_k, d_v);
    __syncthreads();
  }
}

// Adds the parts of a tile of queries' gradients, and writes them rounded, `scale` times.
template <class T, int kDim>
__global__ void __launch_bounds__(kThreads)
    QuerySumsKernel(AttentionShape s, int parts, float* query_sums, T* d_q) {
  using Share = QueryShare<kDim>;
  constexpr int kRow = kDim + 8;  // of other banks than the row before
  using Chunk = Vector<T, 8>;
  __shared__ Chunk chunks[kQueries * kRow / 8];
  T* const rows = &chunks[0].at[0];
  const int64_t of_part = s.batch * s.heads * QuerySumsOfHead(s.queries, kDim);
  float* const tile = query_sums + int64_t{blockIdx.x} * (kQueries * kDim);
#pragma unroll
  for (int n = 0; n < Share::kBlocks; ++n) {
    auto sum = *Share::Place(tile, n);
    for (int part = 1; part < parts; ++part) {
      const auto more = *Share::Place(tile + part * of_part, n);
#pragma unroll
      for (int i = 0; i < 4; ++i) sum.at[i] += more.at[i];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const auto at = Share::CellOf(static_cast<int>(threadIdx.x), n, i);
      rows[at.query * kRow + at.dim] = Store<T>(sum.at[i] * s.scale);
    }
  }
  __syncthreads();
  const auto tiles = static_cast<unsigned>(QuerySumsOfHead(s.queries, kDim) / (kQueries * kDim));
  const int64_t head = blockIdx.x / tiles;
  const int first = static_cast<int>(blockIdx.x % tiles) * kQueries;
  const auto to = QueryRows(s, d_q, head / s.heads, head % s.heads);
  for (int e = static_cast<int>(threadIdx.x); e < kQueries * kDim / 8; e += kThreads) {
    const int row = e / (kDim / 8), column = e % (kDim / 8) * 8;
    if (first + row < to.count && column < s.dim) {
      *reinterpret_cast<Chunk*>(to[first + row] + column) =
          *reinterpret_cast<const Chunk*>(rows + row * kRow + column);
    }
  }
}

template <class T, int kDim, bool kPlain>
int Issue(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
          const AttentionResults<T>& results, const AttentionGradients<T>& out,
          const AttentionWork& work) {
  const AttentionShape& s = use.shape;
  const int64_t size = s.batch * s.heads * QuerySumsOfHead(s.queries, kDim);
  const auto bytes = static_cast<size_t>(work.parts * size) * sizeof(float);
  int error = static_cast<int>(
      cudaMemsetAsync(work.query_sums, 0, bytes, static_cast<cudaStream_t>(stream)));
  if (error != 0) return error;
  // A block of threads for each part.
  const LaunchShape shape = GroupShape(kTiles, GroupGradBytes(kDim), int64_t{work.parts} * kKeys,
                                       s.batch * s.kv_heads, s.queries);
  error = Launch(GroupGradKernel<T, kDim, kPlain>, shape, stream, use, in, results, work.parts,
                 out.d_q, out.d_k, out.d_v, work.query_sums);
  if (error != 0) return error;
  return Launch(QuerySumsKernel<T, kDim>, ShapeForRows(size / (kQueries * kDim), kThreads), stream,
                s, work.parts, work.query_sums, out.d_q);
}

}  // namespace

template <class T>
int GroupGrad(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
              const AttentionResults<T>& results, const AttentionGradients<T>& out,
              const AttentionWork& work) {
  return ForKind(use.shape, use.dropout, [&](auto dim, auto plain) {
    return Issue<T, decltype(dim)::value, decltype(plain)::value>(stream, use, in, results, out,
                                                                  work);
  });
}

#define MGC_INSTANTIATE(T)                                                            \
  template int GroupGrad<T>(Stream, const AttentionUse&, const AttentionOperands<T>&, \
                            const AttentionResults<T>&, const AttentionGradients<T>&, \
                            const AttentionWork&)
MGC_INSTANTIATE(Bfloat16);
MGC_INSTANTIATE(Float16);
#undef MGC_INSTANTIATE

}  // namespace mgc::cuda
