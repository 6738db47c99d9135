// What the kernels of attention on tensor cores share: tiles in shared memory, the operands of
// products out of them, and the forms of scores. Device code only.
//
// A block owns 16-row bands of one side of the pairs, kBands of them a warp, and goes through tiles
// of kColumns rows of the other side. Scores stand in registers as the sums of products do
// (tensor_layout.h); rounded to pairs of T they are the left operand of the next product as they
// stand (Dao, arXiv:2307.08691), so that no warp needs another's.

#ifndef MGC_KERNELS_CUDA_ATTENTION_ATTENTION_TENSOR_H_
#define MGC_KERNELS_CUDA_ATTENTION_ATTENTION_TENSOR_H_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/attention/attention_view.h"
#include "kernels/cuda/device/tensor_core.h"

namespace mgc::cuda {

inline constexpr float kLog2E = 1.4426950408889634f;

// A tile of rows of kDim elements, of which an operand has `dim`; zeros beyond.
template <class T, int kDim>
struct SharedRows {
  static constexpr int kChunk = 8;  // elements of 16 bytes
  static constexpr int kChunks = kDim / kChunk;
  T* at;

  __device__ T* Chunk(int row, int chunk) const {
    return at + SwizzledChunk(kChunks, row, chunk) * kChunk;
  }
  // The chunk that a lane names of the 16 rows x 2 chunks at (row, 2 step), where `corner` is the
  // lane's at (0, 0): the swizzle of later chunks is one more exchange.
  __device__ T* Named(int corner, int row, int step) const {
    return at + (row * kChunks + (corner ^ (2 * step))) * kChunk;
  }
  __device__ static int Corner(const MatrixCell& lane) {
    return Opaque(SwizzledChunk(kChunks, lane.row, lane.column));
  }
  // For what is below.
  __device__ static int DownCorner() { return Corner(DownThenAcross(LaneOf())); }
  __device__ static int AcrossCorner() { return Corner(AcrossThenDown(LaneOf())); }

  // Rows [row, row + 16), dims [16 step, 16 step + 16), as a left operand.
  __device__ LeftOperand Left(int down_corner, int row, int step) const {
    LeftOperand left;
    LoadMatrices<false>(Named(down_corner, row, step), left.at);
    return left;
  }
  // The same rows as 16 columns of right operands that are as deep as the rows are long.
  __device__ void Columns(int across_corner, int row, int step, RightOperand (&right)[2]) const {
    uint32_t all[4];
    LoadMatrices<false>(Named(across_corner, row, step), all);
    right[0] = {{all[0], all[1]}};
    right[1] = {{all[2], all[3]}};
  }
  // The same rows as the depth of right operands, whose columns are the 16 dims.
  __device__ void Depth(int down_corner, int row, int step, RightOperand (&right)[2]) const {
    uint32_t all[4];
    LoadMatrices<true>(Named(down_corner, row, step), all);
    right[0] = {{all[0], all[1]}};
    right[1] = {{all[2], all[3]}};
  }

  __device__ static int LaneOf() { return static_cast<int>(threadIdx.x) % kWarp; }
};

// Starts the copy of rows [first, first + kRows) to a tile by kThreads threads.
template <int kRows, int kThreads, class Tile, class T>
__device__ __forceinline__ void StartCopy(const Tile& to, const Rows<const T>& x, int first,
                                          int dim) {
  constexpr int kAll = kRows * Tile::kChunks;
#pragma unroll
  for (int e = 0; e < kAll; e += kThreads) {
    const int place = e + static_cast<int>(threadIdx.x);
    if (kAll % kThreads != 0 && place >= kAll) break;
    const int row = place / Tile::kChunks, chunk = place % Tile::kChunks;
    const bool inside = first + row < x.count && chunk * Tile::kChunk < dim;
    const T* const from = inside ? x[first + row] + chunk * Tile::kChunk : x.at;
    CopyAsync(to.Chunk(row, chunk), from, !inside);
  }
}

// Loops over registers count, by indices that the compiler knows: over references it would take
// them for memory.
//
// [16 rows of a band, kColumns] in the registers of a warp: at[n][i] is SumCell(lane, i) of columns
// from 8n on.
template <int kColumns>
struct Band {
  static constexpr int kBlocks = kColumns / 8;
  float at[kBlocks][4];

  __device__ __forceinline__ void Clear() {
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) at[n][i] = 0.0f;
    }
  }
  // Columns [16 step, 16 step + 16) as a left operand.
  template <class T>
  __device__ __forceinline__ LeftOperand Left(int step) const {
    const float(&x)[4] = at[2 * step];
    const float(&y)[4] = at[2 * step + 1];
    return {{PackPair<T>(x[0], x[1]), PackPair<T>(x[2], x[3]), PackPair<T>(y[0], y[1]),
             PackPair<T>(y[2], y[3])}};
  }
};

// What of a pair of registers 2i and 2i + 1 of a band is the lane's: row 8i further, two columns.
__device__ __forceinline__ int BandRow() { return static_cast<int>(threadIdx.x) % kWarp / 4; }
__device__ __forceinline__ int BandColumn() { return static_cast<int>(threadIdx.x) % 4 * 2; }

// bands = rows of `left` from `row` on, times the first kColumns rows of `right`, transposed.
template <int kBands, int kColumns, class T, int kDim>
__device__ __forceinline__ void DotRows(const SharedRows<T, kDim>& left, int row,
                                        const SharedRows<T, kDim>& right,
                                        Band<kColumns> (&bands)[kBands]) {
  using Tile = SharedRows<T, kDim>;
  const int down = Tile::DownCorner(), across = Tile::AcrossCorner();
#pragma unroll
  for (auto& band : bands) band.Clear();
#pragma unroll
  for (int step = 0; step < kDim / 16; ++step) {
    LeftOperand a[kBands];
#pragma unroll
    for (int b = 0; b < kBands; ++b) a[b] = left.Left(down, row + 16 * b, step);
#pragma unroll
    for (int n = 0; n < kColumns / 16; ++n) {
      RightOperand columns[2];
      right.Columns(across, 16 * n, step, columns);
#pragma unroll
      for (int b = 0; b < kBands; ++b) {
        MultiplyAdd<T>(a[b], columns[0], bands[b].at[2 * n]);
        MultiplyAdd<T>(a[b], columns[1], bands[b].at[2 * n + 1]);
      }
    }
  }
}

// sums += weights, rounded, times the rows of `x`.
template <int kBands, int kColumns, class T, int kDim>
__device__ __forceinline__ void AddRows(const Band<kColumns> (&weights)[kBands],
                                        const SharedRows<T, kDim>& x, Band<kDim> (&sums)[kBands]) {
  const int down = SharedRows<T, kDim>::DownCorner();
#pragma unroll
  for (int step = 0; step < kColumns / 16; ++step) {
    LeftOperand a[kBands];
#pragma unroll
    for (int b = 0; b < kBands; ++b) a[b] = weights[b].template Left<T>(step);
#pragma unroll
    for (int n = 0; n < kDim / 16; ++n) {
      RightOperand depth[2];
      x.Depth(down, 16 * step, n, depth);
#pragma unroll
      for (int b = 0; b < kBands; ++b) {
        MultiplyAdd<T>(a[b], depth[0], sums[b].at[2 * n]);
        MultiplyAdd<T>(a[b], depth[1], sums[b].at[2 * n + 1]);
      }
    }
  }
}

// Multiplies each of a lane's two rows by its factor.
template <int kDim>
__device__ __forceinline__ void Scale(const float (&factors)[2], Band<kDim>* band) {
#pragma unroll
  for (int n = 0; n < kDim / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) band->at[n][i] *= factors[i / 2];
  }
}

// Writes a band, rounded, to rows [first, first + 16) of `to`, in whole vectors: by way of the rows
// of `staged` from `row` on, which no other warp touches.
template <class Tile, class T, int kDim>
__device__ __forceinline__ void PutRowsOfBand(const Tile& staged, int row, const Band<kDim>& band,
                                              int first, int dim, const Rows<T>& to) {
  using Chunk = Vector<T, Tile::kChunk>;
  __syncwarp();
#pragma unroll
  for (int n = 0; n < kDim / 8; ++n) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      T* const at = staged.Chunk(row + BandRow() + 8 * r, n) + BandColumn();
      *reinterpret_cast<uint32_t*>(at) = PackPair<T>(band.at[n][2 * r], band.at[n][2 * r + 1]);
    }
  }
  __syncwarp();
#pragma unroll
  for (int e = 0; e < 16 * Tile::kChunks; e += kWarp) {
    const int place = e + static_cast<int>(threadIdx.x) % kWarp;
    const int r = place / Tile::kChunks, chunk = place % Tile::kChunks;
    if (first + r < to.count && chunk * Tile::kChunk < dim) {
      *reinterpret_cast<Chunk*>(to[first + r] + chunk * Tile::kChunk) =
          *reinterpret_cast<const Chunk*>(staged.Chunk(row + r, chunk));
    }
  }
}

// Scores of one band become -inf where their pair is not visible. The band's rows are `row`, ... of
// the side kOwner, its columns `column`, ... of the other.
template <Side kOwner, int kColumns>
__device__ __forceinline__ void MaskBand(const SampleView& view, int row, int column,
                                         Band<kColumns>* scores) {
  constexpr bool kQueries = kOwner == Side::kQueries;
  PairEnd rows[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int i = row + 8 * r + BandRow();
    rows[r] = kQueries ? view.Query(i) : view.Key(i);
  }
  // One block of columns after the other, for want of registers.
  using Bits = std::conditional_t<(kColumns > 64), uint64_t, uint32_t>;
  Bits hidden = 0;
#pragma unroll 1
  for (int n = 0; n < Band<kColumns>::kBlocks; ++n) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int j = column + 8 * n + BandColumn() + c;
      const PairEnd end = kQueries ? view.Key(j) : view.Query(j);
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const bool seen = kQueries ? view.Sees(rows[r], end) : view.Sees(end, rows[r]);
        hidden |= Bits{!seen} << (4 * n + 2 * r + c);
      }
    }
  }
#pragma unroll
  for (int n = 0; n < Band<kColumns>::kBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((hidden >> (4 * n + i) & 1) != 0) scores->at[n][i] = -INFINITY;
    }
  }
}

// Which pairs of a block's rows and of a tile's are visible.
template <Side kOwner>
struct TileMask {
  static constexpr bool kQueries = kOwner == Side::kQueries;
  Tile tile;
  int lead;  // of a stepped tile: the first query's position, less the first key's

  // Of the tile from `column` on, for the block whose rows are those from `begin` on.
  __device__ __forceinline__ static TileMask Of(Tile tile, const SampleView& view, int begin,
                                                int column) {
    if (tile != Tile::kStepped) return {tile, 0};
    const int query = kQueries ? begin : column, key = kQueries ? column : begin;
    return {tile, static_cast<int>(view.query_positions[query] - view.key_positions[key])};
  }
  // Whether it is sure that none of `rows` rows, from the block's `row` on, sees one of the first
  // `columns` columns, or is seen by one.
  __device__ __forceinline__ bool Hides(int row, int rows, int columns) const {
    if (tile != Tile::kStepped) return false;
    return (kQueries ? lead + row + rows - 1 : lead + columns - 1 - row) < 0;
  }
  // Scores of the band from the block's `row` on become -inf where their pair is not visible.
  template <int kColumns>
  __device__ __forceinline__ void Apply(const SampleView& view, int begin, int row, int column,
                                        Band<kColumns>* scores) const {
    if (tile == Tile::kMixed) MaskBand<kOwner>(view, begin + row, column, scores);
    if (tile != Tile::kStepped) return;
    const int i = row + BandRow(), j = BandColumn();
    const int ahead = kQueries ? lead + i - j : lead + j - i;
#pragma unroll
    for (int n = 0; n < Band<kColumns>::kBlocks; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int right = 8 * n + e % 2, down = e / 2 * 8;
        if (ahead < (kQueries ? right - down : down - right)) scores->at[n][e] = -INFINITY;
      }
    }
  }
};

// The words of a lane's four elements in 8 columns of a band whose pairs have whole blocks: a block
// is computed once, by one of the lanes that need its words. Rows are queries: two lanes side by
// side have the same four keys of two rows; each computes one row's block.
__device__ __forceinline__ void WordsOfQueries(const AttentionDrops& drops, int row, int column,
                                               uint32_t (&words)[4]) {
  const bool odd = threadIdx.x % 2 != 0;
  const PhiloxBlock block =
      drops.BlockOf(drops.IndexOf(row + BandRow() + (odd ? 8 : 0), column + BandColumn() / 4 * 4));
#pragma unroll
  for (int c = 0; c < 2; ++c) {
    const uint32_t low = block.word[c], high = block.word[2 + c];
    const uint32_t got = __shfl_xor_sync(kWholeWarp, odd ? low : high, 1);
    words[c] = odd ? got : low;
    words[2 + c] = odd ? high : got;
  }
}
// Rows are keys: of four lanes below one another, lane i computes the block of every lane's element
// i, whose word j is lane j's.
__device__ __forceinline__ void WordsOfKeys(const AttentionDrops& drops, int row, int column,
                                            uint32_t (&words)[4]) {
  const int lane = BandRow() % 4;
  const PhiloxBlock block = drops.BlockOf(
      drops.IndexOf(column + BandColumn() + lane % 2, row + BandRow() / 4 * 4 + lane / 2 * 8));
#pragma unroll
  for (int i = 0; i < 4; ++i) words[i] = block.word[i];
#pragma unroll
  for (int by = 1; by <= 2; by *= 2) {
    const bool upper = (lane & by) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((i & by) != 0) continue;
      const uint32_t got = __shfl_xor_sync(kWholeWarp, upper ? words[i] : words[i + by], 4 * by);
      (upper ? words[i] : words[i + by]) = got;
    }
  }
}

// What dropout multiplies a lane's four elements by, in the 8 columns from `column` on of the band
// whose rows are those from `row` on.
template <Side kOwner>
__device__ __forceinline__ void KeptOfBlock(const AttentionDrops& drops, int row, int column,
                                            float (&kept)[4]) {
  constexpr bool kQueries = kOwner == Side::kQueries;
  if (drops.HasWholeBlocks()) {
    uint32_t words[4];
    kQueries ? WordsOfQueries(drops, row, column, words) : WordsOfKeys(drops, row, column, words);
#pragma unroll
    for (int i = 0; i < 4; ++i) kept[i] = drops.KeptBy(words[i]);
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int own = row + BandRow() + i / 2 * 8, other = column + BandColumn() + i % 2;
    kept[i] = kQueries ? drops.Kept(own, other) : drops.Kept(other, own);
  }
}

// The rows of one head that a block owns, from `first` on. Blocks of one head lie side by side, as
// they read the same rows of the other side; later rows first, which in causal attention see most.
struct HeadPlace {
  int first, b, h;
};
__device__ inline HeadPlace HeadPlaceOf(int64_t rows, int64_t heads, int size) {
  const unsigned blocks = static_cast<unsigned>((rows + size - 1) / size);
  const unsigned head = blockIdx.x / blocks, count = static_cast<unsigned>(heads);
  return {static_cast<int>((blocks - 1 - blockIdx.x % blocks) * static_cast<unsigned>(size)),
          static_cast<int>(head / count), static_cast<int>(head % count)};
}

// Tanh within 2^-22 of one.
__device__ __forceinline__ float BoundedTanh(float x) {
  return 1.0f - 2.0f / (1.0f + Exp2(x * (2.0f * kLog2E)));
}

// Dot products become scores: cap · tanh(scale · dot / cap).
template <int kColumns>
__device__ __forceinline__ void CapBand(const AttentionShape& s, Band<kColumns>* scores) {
  const float factor = s.scale / s.cap;
#pragma unroll
  for (int n = 0; n < kColumns / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      scores->at[n][i] = s.cap * BoundedTanh(scores->at[n][i] * factor);
    }
  }
}

// The power of two that a unit of dot product stands for in the exponent of a probability; where
// there is a cap, of the capped score.
__device__ __forceinline__ float ExponentScale(const AttentionShape& s) {
  return s.cap == 0.0f ? s.scale * kLog2E : kLog2E;
}

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_ATTENTION_ATTENTION_TENSOR_H_
