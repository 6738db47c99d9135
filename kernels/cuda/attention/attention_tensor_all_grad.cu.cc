// All gradients of attention in one pass over the pairs, on tensor cores: five products, where a
// pass for keys and one for queries make seven, and one draw of dropout's bits instead of two.
//
// The blocks of keys of a head are cut into parts, one for each block of threads, which goes
// through its blocks of keys one after the other. What it adds up of the queries' gradients stands
// in f32 in its part of the workspace; an element is one thread's, so the order is that of the
// keys. The parts are added in order behind it.
#include "kernels/cuda/api.h"
#include "kernels/cuda/attention/attention_tensor_key_grad.h"
#include "kernels/cuda/device/each.h"

namespace mgc::cuda {
namespace {

// Gradients of the scores of a block's keys with a tile of queries, handed from the warps that have
// the keys to those that have the queries: [kKeys, 32 queries], two keys in 128 bytes.
template <class T, int kKeys>
struct SpreadScores {
  static constexpr int kQueries = 32, kChunk = 8;
  T* at;

  __device__ __forceinline__ T* Chunk(int key, int chunk) const {
    return at + SwizzledHalfChunk(key, chunk) * kChunk;
  }
  // The band of the keys from `row` on, rounded.
  __device__ __forceinline__ void Put(int row, const Band<kQueries>& band) const {
#pragma unroll
    for (int n = 0; n < Band<kQueries>::kBlocks; ++n) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        T* const to = Chunk(row + BandRow() + 8 * r, n) + BandColumn();
        *reinterpret_cast<uint32_t*>(to) = PackPair<T>(band.at[n][2 * r], band.at[n][2 * r + 1]);
      }
    }
  }
  // Queries [16 band, 16 band + 16), keys [16 step, 16 step + 16), as a left operand.
  __device__ __forceinline__ LeftOperand Left(int band, int step) const {
    const MatrixCell lane = AcrossThenDown(static_cast<int>(threadIdx.x) % kWarp);
    LeftOperand left;
    LoadMatrices<true>(Chunk(16 * step + lane.row, 2 * band + lane.column), left.at);
    return left;
  }
};

// A warp's share of a tile of queries' gradients: 16 queries, and some of their dims.
template <class T, int kDim, bool kPlain>
struct QueryShare {
  using Block = KeyGradBlock<T, kDim, kPlain>;
  using Spread = SpreadScores<T, Block::kRows>;
  using Pair = Vector<float, 2>;
  static constexpr int kRowBands = Block::kColumns / 16;
  static constexpr int kDims = kDim / (Block::kTiles.warps / kRowBands);
  static_assert(Spread::kQueries == Block::kColumns && kDims % 16 == 0);
  // It lies where the tile of q and d_o was.
  static_assert(Block::kRows * Block::kColumns <= 2 * Block::kColumns * kDim);

  Rows<float> to;
  int dim, query, column;  // the lane's first

  __device__ __forceinline__ static int Warp() { return static_cast<int>(threadIdx.x) / kWarp; }
  __device__ __forceinline__ static int RowBand() { return Warp() % kRowBands; }
  __device__ __forceinline__ static int FirstDim() { return Warp() / kRowBands * kDims; }

  // `Use(place, n, r)` for the lane's pairs of elements that there are.
  template <class Function>
  __device__ __forceinline__ void ForEachPair(const Function& use) const {
#pragma unroll
    for (int n = 0; n < kDims / 8; ++n) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int i = query + 8 * r, d = column + 8 * n;
        if (i < to.count && d < dim) use(reinterpret_cast<Pair*>(to[i] + d), n, r);
      }
    }
  }
  // Adds what follows from the scores of all keys of the block to what earlier keys have left.
  __device__ __forceinline__ void Add(const Spread& scores, const SharedRows<T, kDim>& keys) const {
    Band<kDims> sums;
    sums.Clear();
    ForEachPair([&](const Pair* at, int n, int r) {
      const Pair pair = *at;
      sums.at[n][2 * r] = pair.at[0];
      sums.at[n][2 * r + 1] = pair.at[1];
    });
    const int down = SharedRows<T, kDim>::DownCorner();
#pragma unroll
    for (int step = 0; step < Block::kRows / 16; ++step) {
      const LeftOperand left = scores.Left(RowBand(), step);
#pragma unroll
      for (int n = 0; n < kDims / 16; ++n) {
        RightOperand depth[2];
        keys.Depth(down, 16 * step, FirstDim() / 16 + n, depth);
        MultiplyAdd<T>(left, depth[0], sums.at[2 * n]);
        MultiplyAdd<T>(left, depth[1], sums.at[2 * n + 1]);
      }
    }
    ForEachPair([&](Pair* at, int n, int r) {
      *at = Pair{{sums.at[n][2 * r], sums.at[n][2 * r + 1]}};
    });
  }
};

// One tile of queries: all that follows from its scores with the block's keys.
template <class T, int kDim, bool kPlain>
__device__ __forceinline__ void AddTile(const QueryTile& tile, int stage, float* query_sums,
                                        KeyGradBlock<T, kDim, kPlain>* block) {
  using Block = KeyGradBlock<T, kDim, kPlain>;
  using Share = QueryShare<T, kDim, kPlain>;
  constexpr int kBands = Block::kBands, kColumns = Block::kColumns;
  const AttentionShape& s = block->use.shape;
  Band<kColumns> scores[kBands], d_p[kBands];
  if (block->ScoreTile(tile, stage, scores, d_p)) {
    block->AddTile(stage, scores, d_p);
  } else {
#pragma unroll
    for (auto& band : d_p) band.Clear();
  }
  const typename Share::Spread spread = {block->pairs.First(stage).at};
  __syncthreads();  // nobody reads the tile's q and d_o
#pragma unroll
  for (int b = 0; b < kBands; ++b) spread.Put(block->row + 16 * b, d_p[b]);
  __syncthreads();
  const Share share = {QueryRows(s, query_sums, Opaque(block->at.b), tile.h), block->dim(),
                       tile.t * kColumns + 16 * Share::RowBand() + BandRow(),
                       Share::FirstDim() + BandColumn()};
  share.Add(spread, block->keys);
}

// Which block of keys is the `round`th of a part: parts take turns forwards and backwards, so that
// they have as much to do where later keys are seen by fewer queries.
__device__ __forceinline__ int KeyBlockOf(int part, int parts, int round) {
  return round * parts + (round % 2 == 0 ? part : parts - 1 - part);
}

template <class T, int kDim, bool kPlain>
__global__ void __launch_bounds__(KeyGradTiles(kDim, kPlain).threads())
    TensorGradKernel(AttentionUse use, AttentionOperands<T> in, AttentionResults<T> results,
                     int parts, T* d_q, T* d_k, T* d_v, float* query_sums) {
  using Block = KeyGradBlock<T, kDim, kPlain>;
  const AttentionShape& s = use.shape;
  const int head = static_cast<int>(blockIdx.x) / parts,
            part = static_cast<int>(blockIdx.x) % parts;
  const int kv_heads = static_cast<int>(s.kv_heads);
  float* const sums = query_sums + part * (s.batch * s.queries * s.heads * s.dim);
  auto block =
      KeyGradBlockAt<T, kDim, kPlain>(use, in, results, d_q, {0, head / kv_heads, head % kv_heads});
  for (int round = 0; round * parts * Block::kRows < s.keys; ++round) {
    block.at.first = KeyBlockOf(part, parts, round) * Block::kRows;
    if (block.at.first >= s.keys) continue;
    block.ForEachTile(
        [&](const QueryTile& tile, int stage) { AddTile(tile, stage, sums, &block); });
    __syncthreads();  // nobody reads the keys, where the results go through
    block.End(d_k, d_v);
    __syncthreads();
  }
}

// Rounded sums of the parts, `scale` times.
template <class T>
struct SumOfParts {
  static constexpr int kCount = 4;
  const float* from;
  T* to;
  int64_t size;  // of a part
  int parts;
  float scale;

  __device__ void operator()(int64_t i) const {
    Vector<float, kCount> sum = *reinterpret_cast<const Vector<float, kCount>*>(from + i * kCount);
    for (int part = 1; part < parts; ++part) {
      const auto more =
          *reinterpret_cast<const Vector<float, kCount>*>(from + part * size + i * kCount);
#pragma unroll
      for (int e = 0; e < kCount; ++e) sum.at[e] += more.at[e];
    }
    Vector<T, kCount> rounded;
#pragma unroll
    for (int e = 0; e < kCount; ++e) rounded.at[e] = Store<T>(sum.at[e] * scale);
    *reinterpret_cast<Vector<T, kCount>*>(to + i * kCount) = rounded;
  }
};

template <class T, int kDim, bool kPlain>
int Issue(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
          const AttentionResults<T>& results, const AttentionGradients<T>& out,
          const AttentionWork& work) {
  const AttentionShape& s = use.shape;
  const int64_t size = s.batch * s.queries * s.heads * s.dim;
  const auto bytes = static_cast<size_t>(work.parts * size) * sizeof(float);
  int error = static_cast<int>(
      cudaMemsetAsync(work.query_sums, 0, bytes, static_cast<cudaStream_t>(stream)));
  if (error != 0) return error;
  constexpr TensorTiles kTiles = KeyGradTiles(kDim, kPlain);
  // A block of threads for each part.
  const LaunchShape shape = TensorShape(kTiles, kDim, int64_t{work.parts} * kTiles.rows(),
                                        s.batch * s.kv_heads, s.queries);
  error = Launch(TensorGradKernel<T, kDim, kPlain>, shape, stream, use, in, results, work.parts,
                 out.d_q, out.d_k, out.d_v, work.query_sums);
  if (error != 0) return error;
  return Each(stream, size / SumOfParts<T>::kCount,
              SumOfParts<T>{work.query_sums, out.d_q, size, work.parts, s.scale});
}

template <class T, int kDim>
int ForKind(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
            const AttentionResults<T>& results, const AttentionGradients<T>& out,
            const AttentionWork& work) {
  return IsPlain(use.shape, use.dropout)
             ? Issue<T, kDim, true>(stream, use, in, results, out, work)
             : Issue<T, kDim, false>(stream, use, in, results, out, work);
}

}  // namespace

template <class T>
int TensorGrad(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
               const AttentionResults<T>& results, const AttentionGradients<T>& out,
               const AttentionWork& work) {
  return TensorDim(use.shape.dim) == 64 ? ForKind<T, 64>(stream, use, in, results, out, work)
                                        : ForKind<T, 128>(stream, use, in, results, out, work);
}

#define MGC_INSTANTIATE(T)                                                             \
  template int TensorGrad<T>(Stream, const AttentionUse&, const AttentionOperands<T>&, \
                             const AttentionResults<T>&, const AttentionGradients<T>&, \
                             const AttentionWork&)
MGC_INSTANTIATE(Bfloat16);
MGC_INSTANTIATE(Float16);
#undef MGC_INSTANTIATE

}  // namespace mgc::cuda
