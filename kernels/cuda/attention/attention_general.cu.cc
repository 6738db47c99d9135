// Attention of any element type and any dim, in f32.
//
// A block owns kTile rows of one head (queries; for the gradients of keys, keys) and goes through
// tiles of kTile columns of the other side. Its threads stand as 8 x 8: thread (y, x) owns rows
// 4y .. 4y+3 of every tile, and columns 4x .. 4x+3 of scores. Sums of results are in registers:
// columns 4x + 32c .. 4x + 32c + 3 of a chunk of kOut dims; where there are several chunks each has
// blocks of its own, which compute the scores anew.
#include "kernels/cuda/attention/attention_view.h"
#include "kernels/cuda/device/elements.h"

namespace mgc::cuda {
namespace {

constexpr int kTile = 32;
constexpr int kSide = 8;   // threads along each side of a tile
constexpr int kOwned = 4;  // rows, and columns, of a thread
constexpr int kThreads = kSide * kSide;
constexpr int kDepth = 32;  // dims of operands, or rows of values, staged at a time
constexpr int kPitch = kTile + 4;
constexpr int kOut = 64;

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
  static constexpr int kVectors = kOut / kTile;
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
  for (int i = 0; i < kOwned; ++i) {
    const int row = first + Row() + i;
    if (row >= to.count) continue;
    for (int c = 0; c < Sums::kVectors; ++c) {
      for (int j = 0; j < 4; ++j) {
        const int d = chunk + c * kTile + Column() + j;
        if (d < dim) to[row][d] = Store<T>(sums.at[i][c][j] * factors[i]);
      }
    }
  }
}

// deltas[r] = sum over dims of d_o · o of row first + r. Threads side by side share a row.
template <class T>
__device__ void PutDeltas(const Rows<const T>& d_o, const Rows<const T>& o, int first, int dim) {
  constexpr int kShare = kThreads / kTile;
  const int r = static_cast<int>(threadIdx.x) / kShare,
            part = static_cast<int>(threadIdx.x) % kShare;
  float sum = 0.0f;
  if (first + r < o.count) {
    for (int d = part; d < dim; d += kShare) {
      sum = fmaf(Load(d_o[first + r][d]), Load(o[first + r][d]), sum);
    }
  }
  for (int by = kShare / 2; by > 0; by /= 2) sum += __shfl_xor_sync(kWholeWarp, sum, by);
  if (part == 0) StagedOf().deltas[r] = sum;
}

// The largest, or the sum, over the threads that share rows.
__device__ inline float MostOfRow(float x) {
  for (int by = kSide / 2; by > 0; by /= 2) x = fmaxf(x, __shfl_xor_sync(kWholeWarp, x, by));
  return x;
}
__device__ inline float SumOfRow(float x) {
  for (int by = kSide / 2; by > 0; by /= 2) x += __shfl_xor_sync(kWholeWarp, x, by);
  return x;
}

// What the softmax is taken of, of a dot product.
__device__ inline float ScoreOf(const AttentionShape& s, float dot) {
  const float score = dot * s.scale;
  return s.cap == 0.0f ? score : s.cap * tanhf(score / s.cap);
}
// Its derivative with respect to the dot product.
__device__ inline float SlopeOf(const AttentionShape& s, float score) {
  if (s.cap == 0.0f) return s.scale;
  const float bound = score / s.cap;
  return bound < -2.0f ? 0.0f : s.scale * (1.0f - bound * bound);
}

// Where a block stands: rows from `first` on of one head, and dims from `chunk` on of results.
struct Place {
  int first, chunk;
  int64_t b, h;
};

// Later rows first: in causal attention queries see more keys the later they stand.
__device__ inline Place PlaceOf(int64_t rows, int64_t heads, int64_t dim) {
  const unsigned blocks = static_cast<unsigned>((rows + kTile - 1) / kTile);
  const unsigned chunks = static_cast<unsigned>((dim + kOut - 1) / kOut);
  const unsigned rest = blockIdx.x / blocks, head = rest / chunks;
  return {static_cast<int>(blocks - 1 - blockIdx.x % blocks) * kTile,
          static_cast<int>(rest % chunks) * kOut, head / heads, head % heads};
}

__device__ inline int TilesIn(int64_t n) { return static_cast<int>((n + kTile - 1) / kTile); }

// The running softmax of a thread's rows; the threads of a row hold the same.
struct RunningSoftmax {
  float most[kOwned], sum[kOwned];

  // Turns scores into exp(score - new maximum); `shrink` is what was summed before must be
  // multiplied by. Where nothing is visible so far, all become zero; NaN stays.
  __device__ void Step(float (&scores)[kOwned][kOwned], float (&shrink)[kOwned]) {
    for (int i = 0; i < kOwned; ++i) {
      float best = most[i];
      for (int j = 0; j < kOwned; ++j) best = fmaxf(best, scores[i][j]);
      best = MostOfRow(best);
      const float from = best == -INFINITY ? 0.0f : best;
      float added = 0.0f;
      for (int j = 0; j < kOwned; ++j) {
        scores[i][j] = expf(scores[i][j] - from);
        added += scores[i][j];
      }
      shrink[i] = expf(most[i] - from);
      sum[i] = fmaf(sum[i], shrink[i], SumOfRow(added));
      most[i] = best;
    }
  }
};

// Scores of a tile, those of invisible pairs -inf. The block's rows are queries.
__device__ inline void MaskQueries(const AttentionUse& use, const AttentionView& view, Tile tile,
                                   int query, int key, float (&dots)[kOwned][kOwned]) {
  for (int i = 0; i < kOwned; ++i) {
    for (int j = 0; j < kOwned; ++j) {
      const bool seen =
          tile == Tile::kVisible || view.Visible(query + Row() + i, key + Column() + j);
      dots[i][j] = seen ? ScoreOf(use.shape, dots[i][j]) : -INFINITY;
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    AttendKernel(AttentionUse use, AttentionOperands<T> in, T* o, float* lse) {
  const AttentionShape& s = use.shape;
  const int dim = static_cast<int>(s.dim);
  const Place at = PlaceOf(s.queries, s.heads, s.dim);
  const AttentionView view = ViewOf(use, at.b);
  const AttentionDrops drops = DropsOf(use, at.b, at.h);
  const int64_t kv_head = at.h / (s.heads / s.kv_heads);
  const auto q = QueryRows(s, in.q, at.b, at.h);
  const auto k = KeyRows(s, in.k, at.b, kv_head), v = KeyRows(s, in.v, at.b, kv_head);
  Tile* const tiles = TilesOf();
  ClassifyTiles<Side::kQueries>(view, at.first, kTile, kTile, tiles);
  __syncthreads();
  Sums sums;
  sums.Clear();
  RunningSoftmax softmax;
  for (int i = 0; i < kOwned; ++i) softmax.most[i] = -INFINITY, softmax.sum[i] = 0.0f;
  const int count = TilesIn(s.keys);
  for (int t = NextTile(tiles, 0, count); t < count; t = NextTile(tiles, t + 1, count)) {
    float scores[kOwned][kOwned], shrink[kOwned];
    DotProducts(q, at.first, k, t * kTile, dim, scores);
    MaskQueries(use, view, tiles[t], at.first, t * kTile, scores);
    softmax.Step(scores, shrink);
    for (int i = 0; i < kOwned; ++i) {
      for (auto& column : sums.at[i]) {
        for (float& sum : column) sum *= shrink[i];
      }
      for (int j = 0; j < kOwned && use.drops(); ++j) {
        scores[i][j] *= drops.Kept(at.first + Row() + i, t * kTile + Column() + j);
      }
    }
    PutWeights(scores);
    AddWeighted(v, t * kTile, at.chunk, dim, &sums);
  }
  float factors[kOwned];
  for (int i = 0; i < kOwned; ++i) {
    const bool any = softmax.sum[i] != 0.0f;
    factors[i] = any ? 1.0f / softmax.sum[i] : 0.0f;
    const int query = at.first + Row() + i;
    if (at.chunk == 0 && Column() == 0 && query < view.queries) {
      lse[(at.b * s.heads + at.h) * s.queries + query] =
          any ? softmax.most[i] + logf(softmax.sum[i]) : -INFINITY;
    }
  }
  PutRows(sums, factors, QueryRows(s, o, at.b, at.h), at.first, at.chunk, dim);
}

// The probability after dropout, and the gradient of the dot product.
struct PairGradient {
  float p, d_dot;
};

// `score` of a pair, -inf where it is invisible.
__device__ inline PairGradient GradientOf(const AttentionUse& use, float score, float lse,
                                          float d_p, float delta, float kept) {
  const float p = lse == -INFINITY ? 0.0f : expf(score - lse);
  if (p == 0.0f) return {0.0f, 0.0f};
  return {p * kept, p * (d_p * kept - delta) * SlopeOf(use.shape, score)};
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    QueryGradKernel(AttentionUse use, AttentionOperands<T> in, AttentionResults<T> results,
                    T* d_q) {
  const AttentionShape& s = use.shape;
  const int dim = static_cast<int>(s.dim);
  const Place at = PlaceOf(s.queries, s.heads, s.dim);
  const AttentionView view = ViewOf(use, at.b);
  const AttentionDrops drops = DropsOf(use, at.b, at.h);
  const int64_t kv_head = at.h / (s.heads / s.kv_heads);
  const auto q = QueryRows(s, in.q, at.b, at.h), d_o = QueryRows(s, results.d_o, at.b, at.h);
  const auto k = KeyRows(s, in.k, at.b, kv_head), v = KeyRows(s, in.v, at.b, kv_head);
  Tile* const tiles = TilesOf();
  ClassifyTiles<Side::kQueries>(view, at.first, kTile, kTile, tiles);
  PutDeltas(d_o, QueryRows(s, results.o, at.b, at.h), at.first, dim);
  __syncthreads();
  const float* const lse = results.lse + (at.b * s.heads + at.h) * s.queries;
  Sums sums;
  sums.Clear();
  const int count = TilesIn(s.keys);
  for (int t = NextTile(tiles, 0, count); t < count; t = NextTile(tiles, t + 1, count)) {
    float scores[kOwned][kOwned], d_p[kOwned][kOwned];
    DotProducts(q, at.first, k, t * kTile, dim, scores);
    MaskQueries(use, view, tiles[t], at.first, t * kTile, scores);
    DotProducts(d_o, at.first, v, t * kTile, dim, d_p);
    for (int i = 0; i < kOwned; ++i) {
      const int query = at.first + Row() + i;
      const float row_lse = query < view.queries ? lse[query] : -INFINITY;
      const float delta = StagedOf().deltas[Row() + i];
      for (int j = 0; j < kOwned; ++j) {
        const float kept = use.drops() ? drops.Kept(query, t * kTile + Column() + j) : 1.0f;
        scores[i][j] = GradientOf(use, scores[i][j], row_lse, d_p[i][j], delta, kept).d_dot;
      }
    }
    PutWeights(scores);
    AddWeighted(k, t * kTile, at.chunk, dim, &sums);
  }
  const float ones[kOwned] = {1.0f, 1.0f, 1.0f, 1.0f};
  PutRows(sums, ones, QueryRows(s, d_q, at.b, at.h), at.first, at.chunk, dim);
}

// One tile of queries, from `query` on, of one head: adds to the gradients of the block's keys.
template <class T>
__device__ void AddKeyGradients(const AttentionUse& use, const AttentionOperands<T>& in,
                                const AttentionResults<T>& results, const AttentionView& view,
                                const Place& at, int64_t h, Tile tile, int query, Sums* d_k,
                                Sums* d_v) {
  const AttentionShape& s = use.shape;
  const int dim = static_cast<int>(s.dim);
  const auto q = QueryRows(s, in.q, at.b, h), d_o = QueryRows(s, results.d_o, at.b, h);
  float scores[kOwned][kOwned], d_p[kOwned][kOwned];
  DotProducts(KeyRows(s, in.k, at.b, at.h), at.first, q, query, dim, scores);
  PutDeltas(d_o, QueryRows(s, results.o, at.b, h), query, dim);
  DotProducts(KeyRows(s, in.v, at.b, at.h), at.first, d_o, query, dim, d_p);
  const AttentionDrops drops = DropsOf(use, at.b, h);
  for (int j = 0; j < kOwned; ++j) {
    const int to = query + Column() + j;
    const float lse =
        to < view.queries ? results.lse[(at.b * s.heads + h) * s.queries + to] : -INFINITY;
    const float delta = StagedOf().deltas[Column() + j];
    for (int i = 0; i < kOwned; ++i) {
      const int key = at.first + Row() + i;
      const bool seen = tile == Tile::kVisible || view.Visible(to, key);
      const float score = seen ? ScoreOf(s, scores[i][j]) : -INFINITY;
      const float kept = use.drops() ? drops.Kept(to, key) : 1.0f;
      const PairGradient pair = GradientOf(use, score, lse, d_p[i][j], delta, kept);
      scores[i][j] = pair.p;
      d_p[i][j] = pair.d_dot;
    }
  }
  PutWeights(scores);
  AddWeighted(d_o, query, at.chunk, dim, d_v);
  __syncthreads();
  PutWeights(d_p);
  AddWeighted(q, query, at.chunk, dim, d_k);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    KeyGradKernel(AttentionUse use, AttentionOperands<T> in, AttentionResults<T> results, T* d_k,
                  T* d_v) {
  const AttentionShape& s = use.shape;
  const int dim = static_cast<int>(s.dim);
  const Place at = PlaceOf(s.keys, s.kv_heads, s.dim);
  const AttentionView view = ViewOf(use, at.b);
  Tile* const tiles = TilesOf();
  ClassifyTiles<Side::kKeys>(view, at.first, kTile, kTile, tiles);
  __syncthreads();
  Sums keys, values;
  keys.Clear();
  values.Clear();
  const int64_t group = s.heads / s.kv_heads;
  const int count = TilesIn(s.queries);
  for (int64_t h = at.h * group; h < (at.h + 1) * group; ++h) {
    for (int t = NextTile(tiles, 0, count); t < count; t = NextTile(tiles, t + 1, count)) {
      AddKeyGradients(use, in, results, view, at, h, tiles[t], t * kTile, &keys, &values);
    }
  }
  const float ones[kOwned] = {1.0f, 1.0f, 1.0f, 1.0f};
  PutRows(keys, ones, KeyRows(s, d_k, at.b, at.h), at.first, at.chunk, dim);
  PutRows(values, ones, KeyRows(s, d_v, at.b, at.h), at.first, at.chunk, dim);
}

LaunchShape ShapeOf(int64_t rows, int64_t others, int64_t heads, int64_t dim) {
  const int64_t blocks = (rows + kTile - 1) / kTile * heads * ((dim + kOut - 1) / kOut);
  const int64_t tiles = (others + kTile - 1) / kTile;
  return ShapeForRows(blocks, kThreads, static_cast<int64_t>(sizeof(Staged)) + tiles);
}

}  // namespace

template <class T>
int GeneralAttention(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in, T* o,
                     float* lse) {
  const AttentionShape& s = use.shape;
  return Launch(AttendKernel<T>, ShapeOf(s.queries, s.keys, s.batch * s.heads, s.dim), stream, use,
                in, o, lse);
}

template <class T>
int GeneralAttentionGrad(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
                         const AttentionResults<T>& results, const AttentionGradients<T>& out) {
  const AttentionShape& s = use.shape;
  const int error = Launch(QueryGradKernel<T>, ShapeOf(s.queries, s.keys, s.batch * s.heads, s.dim),
                           stream, use, in, results, out.d_q);
  if (error != 0) return error;
  return Launch(KeyGradKernel<T>, ShapeOf(s.keys, s.queries, s.batch * s.kv_heads, s.dim), stream,
                use, in, results, out.d_k, out.d_v);
}

#define MGC_INSTANTIATE(T)                                                                       \
  template int GeneralAttention<T>(Stream, const AttentionUse&, const AttentionOperands<T>&, T*, \
                                   float*);                                                      \
  template int GeneralAttentionGrad<T>(Stream, const AttentionUse&, const AttentionOperands<T>&, \
                                       const AttentionResults<T>&, const AttentionGradients<T>&)
MGC_INSTANTIATE(float);
MGC_INSTANTIATE(Bfloat16);
MGC_INSTANTIATE(Float16);
#undef MGC_INSTANTIATE

}  // namespace mgc::cuda
