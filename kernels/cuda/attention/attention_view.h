// One head of an attention call in device code: which pairs of query and key are visible, and what
// dropout makes of them. Shared by all kernels of attention.

#ifndef MGC_KERNELS_CUDA_ATTENTION_ATTENTION_VIEW_H_
#define MGC_KERNELS_CUDA_ATTENTION_ATTENTION_VIEW_H_

#include <cstdint>

#include "graph/base/philox.h"
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/device/device.h"

namespace mgc::cuda {

// The least and the greatest of some positions or segments, and whether they are a run: each is one
// more than the one before.
struct Extent {
  int64_t least, most;
  bool run;
};

// What is known of all pairs of a tile of queries and a tile of keys. Stepped: both have runs of
// positions, and a pair is visible iff its query's is not less than its key's.
enum class Tile : uint8_t { kHidden, kMixed, kStepped, kVisible };

// One end of a pair of query and key.
struct PairEnd {
  int64_t position, segment;
  bool inside;
};

// One sample.
struct SampleView {
  int queries, keys;
  bool causal;
  uint64_t reach;  // how far back from a query its keys end
  const int64_t* query_positions;
  const int64_t* key_positions;
  const int64_t* query_segments;  // null: none
  const int64_t* key_segments;

  // What visibility asks of a query or of a key, loaded once for many pairs.
  __device__ PairEnd Query(int i) const {
    if (i >= queries) return {0, 0, false};
    return {causal ? query_positions[i] : 0, query_segments != nullptr ? query_segments[i] : 0,
            true};
  }
  __device__ PairEnd Key(int j) const {
    if (j >= keys) return {0, 0, false};
    return {causal ? key_positions[j] : 0, key_segments != nullptr ? key_segments[j] : 0, true};
  }
  // Nothing out of range is visible.
  __device__ bool Sees(const PairEnd& query, const PairEnd& key) const {
    const int64_t back = query.position - key.position;
    return query.inside && key.inside && query.segment == key.segment && back >= 0 &&
           static_cast<uint64_t>(back) < reach;
  }
  __device__ bool Visible(int query, int key) const { return Sees(Query(query), Key(key)); }

  __device__ Tile TileOf(const Extent& query, const Extent& key) const {
    if (!causal) return Tile::kVisible;
    const int64_t least = query.least - key.most, most = query.most - key.least;
    if (most < 0 || (least >= 0 && static_cast<uint64_t>(least) >= reach)) return Tile::kHidden;
    if (static_cast<uint64_t>(most) >= reach) return Tile::kMixed;
    return least >= 0 ? Tile::kVisible : query.run && key.run ? Tile::kStepped : Tile::kMixed;
  }
};

__device__ inline SampleView ViewOf(const AttentionUse& use, int64_t sample) {
  const AttentionShape& s = use.shape;
  const AttentionPositions& at = use.positions;
  const bool segments = at.query_segments != nullptr;
  return {static_cast<int>(s.queries),
          static_cast<int>(s.keys),
          s.causal,
          s.window > 0 ? static_cast<uint64_t>(s.window) : uint64_t{1} << 63,
          at.query,
          at.key,
          segments ? at.query_segments + sample * s.queries : nullptr,
          segments ? at.key_segments + sample * s.keys : nullptr};
}

// Rows of one head.
template <class T>
struct Rows {
  T* at;
  int64_t stride;
  int count;

  __device__ T* operator[](int row) const { return at + row * stride; }
};

template <class T>
__device__ Rows<T> QueryRows(const AttentionShape& s, T* x, int64_t b, int64_t h) {
  return {x + (b * s.queries * s.heads + h) * s.dim, s.heads * s.dim, static_cast<int>(s.queries)};
}
template <class T>
__device__ Rows<T> KeyRows(const AttentionShape& s, T* x, int64_t b, int64_t kv_head) {
  return {x + (b * s.keys * s.kv_heads + kv_head) * s.dim, s.kv_heads * s.dim,
          static_cast<int>(s.keys)};
}

// Dropout of one head's probabilities.
struct AttentionDrops {
  DropoutRule rule;
  uint64_t base, stride;

  __device__ uint64_t IndexOf(int query, int key) const {
    return base + static_cast<uint64_t>(query) * stride + static_cast<uint64_t>(key);
  }
  __device__ PhiloxBlock BlockOf(uint64_t index) const {
    return Philox(rule.key.seed, rule.key.stream, index / 4);
  }
  __device__ float KeptBy(uint32_t word) const {
    return word >= rule.threshold ? rule.scale : 0.0f;
  }
  // What the probability of a pair is multiplied by.
  __device__ float Kept(int query, int key) const {
    const uint64_t index = IndexOf(query, key);
    return KeptBy(RandomWord(BlockOf(index), index));
  }
  // Whether keys 4m, ..., 4m + 3 of a query are one block's words in their order.
  __device__ bool HasWholeBlocks() const { return (base | stride) % 4 == 0; }
};

__device__ inline AttentionDrops DropsOf(const AttentionUse& use, int64_t b, int64_t h) {
  const int64_t first = use.sample.in_step + (use.sample.step != nullptr ? *use.sample.step : 0);
  const uint64_t base = use.dropout.base + static_cast<uint64_t>(first) * use.sample_stride +
                        DropoutOffset(use.shape, use.dropout, b, h);
  return {use.rule, base, use.dropout.query};
}

// Adds x[i] to the extent of x[begin, ...).
__device__ inline void Extend(const int64_t* x, int begin, int i, Extent* all) {
  const int64_t at = x[i];
  all->run = all->run && static_cast<uint64_t>(at) - static_cast<uint64_t>(x[begin]) ==
                             static_cast<uint64_t>(i - begin);
  all->least = at < all->least ? at : all->least;
  all->most = at > all->most ? at : all->most;
}

// Of x[begin, end), which is not empty, by kLanes lanes on end, which all call it: a part of a
// warp.
template <int kLanes>
__device__ inline Extent ExtentOf(const int64_t* x, int begin, int end) {
  Extent all = {x[begin], x[begin], true};
#pragma unroll 8
  for (int i = begin + static_cast<int>(threadIdx.x % kLanes); i < end; i += kLanes) {
    Extend(x, begin, i, &all);
  }
  int run = all.run ? 1 : 0;
#pragma unroll
  for (int by = kLanes / 2; by > 0; by /= 2) {
    const int64_t least = __shfl_xor_sync(kWholeWarp, all.least, by);
    const int64_t most = __shfl_xor_sync(kWholeWarp, all.most, by);
    run &= __shfl_xor_sync(kWholeWarp, run, by);
    all.least = least < all.least ? least : all.least;
    all.most = most > all.most ? most : all.most;
  }
  all.run = run != 0;
  return all;
}

// The side of pairs that a block owns, and the one whose tiles it goes through.
enum class Side { kQueries, kKeys };

// Writes to `tiles` what the owner of `rows` rows from `begin` on, or of as many as there are, sees
// of each tile of `size` of the other side.
// All threads of a block call it; nobody reads `tiles` before the next barrier.
template <Side kOwner>
__device__ void ClassifyTiles(const SampleView& view, int begin, int rows, int size, Tile* tiles) {
  constexpr bool kQueries = kOwner == Side::kQueries;
  const int64_t* const own = kQueries ? view.query_positions : view.key_positions;
  const int64_t* const other = kQueries ? view.key_positions : view.query_positions;
  const int64_t* const own_segments = kQueries ? view.query_segments : view.key_segments;
  const int64_t* const other_segments = kQueries ? view.key_segments : view.query_segments;
  const int owned = kQueries ? view.queries : view.keys;
  const int others = kQueries ? view.keys : view.queries;
  const int end = begin + rows < owned ? begin + rows : owned;
  const bool segments = own_segments != nullptr;
  const Extent mine = view.causal ? ExtentOf<kWarp>(own, begin, end) : Extent{0, 0, false};
  const Extent mine_segments =
      segments ? ExtentOf<kWarp>(own_segments, begin, end) : Extent{0, 0, false};
  const int count = (others + size - 1) / size;
  constexpr int kLanes = 8;  // of a tile
  const int lanes = static_cast<int>(threadIdx.x), at_once = static_cast<int>(blockDim.x) / kLanes;
  for (int group = 0; group < count; group += at_once) {
    // Lanes beyond the tiles take part for the sake of their warp.
    const int t = group + lanes / kLanes < count ? group + lanes / kLanes : count - 1;
    const int first = t * size;
    const bool whole = first + size <= others;
    const int last = whole ? first + size : others;
    Tile tile = Tile::kVisible;
    if (view.causal) {
      const Extent theirs = ExtentOf<kLanes>(other, first, last);
      tile = kQueries ? view.TileOf(mine, theirs) : view.TileOf(theirs, mine);
    }
    if (segments) {
      const Extent theirs = ExtentOf<kLanes>(other_segments, first, last);
      const bool apart = theirs.least > mine_segments.most || theirs.most < mine_segments.least;
      const bool one = theirs.least == mine_segments.most && theirs.most == mine_segments.least;
      tile = apart || tile == Tile::kHidden ? Tile::kHidden : one ? tile : Tile::kMixed;
    }
    const bool mine_to_say = lanes % kLanes == 0 && group + lanes / kLanes < count;
    if (mine_to_say) tiles[t] = tile != Tile::kHidden && !whole ? Tile::kMixed : tile;
  }
}

// The first tile from `t` on that is not hidden; `count` when there is none.
__device__ inline int NextTile(const Tile* tiles, int t, int count) {
  while (t < count && tiles[t] == Tile::kHidden) ++t;
  return t;
}

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_ATTENTION_ATTENTION_VIEW_H_
