// Launches of attention by warpgroups (sm_90a): their blocks; host code. They take what tensor
// cores take (attention_tensor_shape.h), where the GPU has warpgroups.

#ifndef MGC_KERNELS_CUDA_ATTENTION_ATTENTION_GROUP_SHAPE_H_
#define MGC_KERNELS_CUDA_ATTENTION_ATTENTION_GROUP_SHAPE_H_

#include <cstdint>

#include "kernels/cuda/attention/attention_tensor_shape.h"

namespace mgc::cuda {

// How a kernel cuts its side of the pairs, and the other's.
struct GroupTiles {
  int groups;   // warpgroups, of 64 rows each
  int columns;  // rows of the other side in a tile
  int blocks;   // of threads on a multiprocessor, for want of registers

  constexpr int rows() const { return groups * 64; }
  constexpr int threads() const { return groups * 128; }
};

// Queries; tiles of k and v, one pair in use and one on its way.
constexpr GroupTiles GroupForwardTiles(int dim, bool plain) {
  return dim == 64 ? GroupTiles{2, 64, plain ? 2 : 1} : GroupTiles{2, 128, 1};
}
constexpr int64_t GroupForwardBytes(int dim, bool plain) {
  const GroupTiles tiles = GroupForwardTiles(dim, plain);
  return int64_t{2} * dim * (tiles.rows() + 4 * tiles.columns);
}

// Keys; tiles of q and d_o, one pair in use and two on their way; the gradients of a tile's scores;
// lse and delta of the tiles.
constexpr GroupTiles GroupGradTiles() { return {2, 64, 1}; }
inline constexpr int kGroupGradStages = 3;
constexpr int64_t GroupGradBytes(int dim) {
  constexpr GroupTiles kTiles = GroupGradTiles();
  return int64_t{2} * dim * (2 * kTiles.rows() + 2 * kGroupGradStages * kTiles.columns) +
         int64_t{2} * kTiles.rows() * kTiles.columns +
         int64_t{4} * 2 * kGroupGradStages * kTiles.columns;
}

// Whether they take a use that tensor cores take: the classes of all tiles are in shared memory.
bool GroupsTake(const AttentionShape& shape);

// Blocks for `rows` rows of each of `heads` heads; `others` rows are on the other side.
LaunchShape GroupShape(const GroupTiles& tiles, int64_t shared_bytes, int64_t rows, int64_t heads,
                       int64_t others);

// Floats that a head's gradients of queries take, tile by tile.
constexpr int64_t QuerySumsOfHead(int64_t queries, int dim) {
  constexpr int64_t kColumns = GroupGradTiles().columns;
  return (queries + kColumns - 1) / kColumns * kColumns * dim;
}

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_ATTENTION_ATTENTION_GROUP_SHAPE_H_
