// What the kernels of attention of any element type and any dim share; their arithmetic is that of
// f32. Device code only.
//
// A block owns kTile rows of one head (queries; for the gradients of keys, keys) and goes through
// tiles of kTile columns of the other side. Its threads stand as 8 x 8: thread (y, x) owns rows
// 4y .. 4y+3 of every tile, and columns 4x .. 4x+3 of scores. Sums of results are in registers:
// columns 4x + 32c .. 4x + 32c + 3 of a chunk of kOut dims; where there are several chunks each has
// blocks of its own, which compute the scores anew.

#ifndef MGC_KERNELS_CUDA_ATTENTION_ATTENTION_GENERAL_H_
#define MGC_KERNELS_CUDA_ATTENTION_ATTENTION_GENERAL_H_

#include "kernels/cuda/attention/attention_view.h"
#include "kernels/cuda/device/elements.h"

namespace mgc::cuda::general {

inline constexpr int kTile = 32;
inline constexpr int kSide = 8;   // threads along each side of a tile
inline constexpr int kOwned = 4;  // rows, and columns, of a thread
inline constexpr int kThreads = kSide * kSide;
inline constexpr int kDepth = 32;  // dims of operands, or rows of values, staged at a time
inline constexpr int kPitch = kTile + 4;
inline constexpr int kOut = 64;

using Four = Vector<float, 4>;

// Staged operands are [depth][kPitch], transposed, or values [depth][kOut]; weights are [column of
// scores][kPitch], so that a thread reads its rows as one vector.
struct Staged {
  Four operands[kDepth * (2 * kPitch > kOut ? 2 * kPitch : kOut) / 4];
  Four weights[kTile * kPitch / 4];
  float deltas[kTile];
};

__device__ inline Staged& StagedOf() { return *reinterpret_cast<Staged*>(SharedBytes()); }
__device__ inline Tile* TilesOf() {
  return reinterpret_cast<Tile*>(SharedBytes() + sizeof(Staged));
}
__device__ inline int Row() { return static_cast<int>(threadIdx.x) / kSide * kOwned; }
__device__ inline int Column() { return static_cast<int>(threadIdx.x) % kSide * kOwned; }

// [kTile rows, kDepth dims] from (row, d) on, transposed; zeros beyond.
template <class T>
__device__ void StageTransposed(const Rows<const T>& x, int row, int d, int dim, float* to) {
  for (int e = static_cast<int>(threadIdx.x); e < kTile * kDepth; e += kThreads) {
    const int r = e / kDepth, c = e % kDepth;
    const bool inside = row + r < x.count && d + c < dim;
    to[c * kPitch + r] = inside ? Load(x[row + r][d + c]) : 0.0f;
  }
}

__device__ inline Four At(const float* x) { return *reinterpret_cast<const Four*>(x); }

// sums[i][j] = dot product of row a_row + Row() + i and row b_row + Column() + j.
template <class T>
__device__ void DotProducts(const Rows<const T>& a, int a_row, const Rows<const T>& b, int b_row,
                            int dim, float (&sums)[kOwned][kOwned]) {
  float* const left = StagedOf().operands[0].at;
  float* const right = left + kDepth * kPitch;
  for (auto& row : sums) {
    for (float& sum : row) sum = 0.0f;
  }
  for (int d = 0; d < dim; d += kDepth) {
    __syncthreads();
    StageTransposed(a, a_row, d, dim, left);
    StageTransposed(b, b_row, d, dim, right);
    __syncthreads();
    const int depth = dim - d < kDepth ? dim - d : kDepth;
    for (int k = 0; k < depth; ++k) {
      const Four x = At(left + k * kPitch + Row()), y = At(right + k * kPitch + Column());
#pragma unroll
      for (int i = 0; i < kOwned; ++i) {
#pragma unroll
        for (int j = 0; j < kOwned; ++j) sums[i][j] = fmaf(x.at[i], y.at[j], sums[i][j]);
      }
    }
  }
}

struct Sums {
  static inline constexpr int kVectors = kOut / kTile;
  float at[kOwned][kVectors][4];

  __device__ void Clear() { *this = {}; }
};

// Adds up, for each of the block's rows, weights times rows [first, first + kTile) of x, dims from
// `chunk` on.
template <class T>
__device__ void AddWeighted(const Rows<const T>& x, int first, int chunk, int dim, Sums* sums) {
  float* const values = StagedOf().operands[0].at;
  const float* const weights = StagedOf().weights[0].at;
  for (int part = 0; part < kTile && first + part < x.count; part += kDepth) {
    __syncthreads();
    for (int e = static_cast<int>(threadIdx.x); e < kDepth * kOut; e += kThreads) {
      const int r = first + part + e / kOut, c = chunk + e % kOut;
      values[e] = r < x.count && c < dim ? Load(x[r][c]) : 0.0f;
    }
    __syncthreads();
    for (int k = 0; k < kDepth; ++k) {
      const Four w = At(weights + (part + k) * kPitch + Row());
#pragma unroll
      for (int c = 0; c < Sums::kVectors; ++c) {
        const Four v = At(values + k * kOut + c * kTile + Column());
#pragma unroll
        for (int i = 0; i < kOwned; ++i) {
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            sums->at[i][c][j] = fmaf(w.at[i], v.at[j], sums->at[i][c][j]);
          }
        }
      }
    }
  }
}

// Hands weights to the other threads of the block; they read them behind the next barrier.
__device__ inline void PutWeights(const float (&weights)[kOwned][kOwned]) {
  float* const to = StagedOf().weights[0].at;
#pragma unroll
  for (int j = 0; j < kOwned; ++j) {
#pragma unroll
    for (int i = 0; i < kOwned; ++i) to[(Column() + j) * kPitch + Row() + i] = weights[i][j];
  }
}

// Rounded sums, each row times its factor.
template <class T>
__device__ void PutRows(const Sums& sums, const float (&factors)[kOwned], const Rows<T>& to,
                        int first, int chunk, int dim) {
#pragma unroll
  for (int i = 0; i < kOwned; ++i) {
    const int row = first + Row() + i;
    if (row >= to.count) continue;
#pragma unroll
    for (int c = 0; c < Sums::kVectors; ++c) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int d = chunk + c * kTile + Column() + j;
        if (d < dim) to[row][d] = Store<T>(sums.at[i][c][j] * factors[i]);
      }
    }
  }
}

// What the softmax is taken of, of a dot product.
__device__ inline float ScoreOf(const AttentionShape& s, float dot) {
  const float score = dot * s.scale;
  return s.cap == 0.0f ? score : s.cap * tanhf(score / s.cap);
}
// Where a block stands: rows from `first` on of one head, and dims from `chunk` on of results.
struct BlockPlace {
  int first, chunk;
  int64_t b, h;
};

// Later rows first: in causal attention queries see more keys the later they stand.
__device__ inline BlockPlace PlaceOf(int64_t rows, int64_t heads, int64_t dim) {
  const unsigned blocks = static_cast<unsigned>((rows + kTile - 1) / kTile);
  const unsigned chunks = static_cast<unsigned>((dim + kOut - 1) / kOut);
  const unsigned rest = blockIdx.x / blocks, head = rest / chunks;
  return {static_cast<int>(blocks - 1 - blockIdx.x % blocks) * kTile,
          static_cast<int>(rest % chunks) * kOut, head / heads, head % heads};
}

__device__ inline int TilesIn(int64_t n) { return static_cast<int>((n + kTile - 1) / kTile); }

// Scores of a tile, those of invisible pairs -inf. The block's rows are queries.
__device__ inline void MaskQueries(const AttentionUse& use, const SampleView& view, Tile tile,
                                   int query, int key, float (&dots)[kOwned][kOwned]) {
#pragma unroll
  for (int i = 0; i < kOwned; ++i) {
#pragma unroll
    for (int j = 0; j < kOwned; ++j) {
      const bool seen =
          tile == Tile::kVisible || view.Visible(query + Row() + i, key + Column() + j);
      dots[i][j] = seen ? ScoreOf(use.shape, dots[i][j]) : -INFINITY;
    }
  }
}

inline LaunchShape ShapeOf(int64_t rows, int64_t others, int64_t heads, int64_t dim) {
  const int64_t blocks = (rows + kTile - 1) / kTile * heads * ((dim + kOut - 1) / kOut);
  const int64_t tiles = (others + kTile - 1) / kTile;
  return ShapeForRows(blocks, kThreads, static_cast<int64_t>(sizeof(Staged)) + tiles);
}

}  // namespace mgc::cuda::general

#endif  // MGC_KERNELS_CUDA_ATTENTION_ATTENTION_GENERAL_H_
