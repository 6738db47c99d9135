#include "kernels/cuda/attention/attention_group_shape.h"

#include <initializer_list>

namespace mgc::cuda {

bool GroupsTake(const AttentionShape& s) {
  const int dim = TensorDim(s.dim);
  const int64_t heads = s.batch * s.heads;
  for (const bool plain : {true, false}) {
    if (!IsLaunchable(GroupShape(GroupForwardTiles(dim, plain), GroupForwardBytes(dim, plain),
                                 s.queries, heads, s.keys))) {
      return false;
    }
  }
  return IsLaunchable(GroupShape(GroupGradTiles(), GroupGradBytes(dim), s.keys, heads, s.queries));
}

LaunchShape GroupShape(const GroupTiles& tiles, int64_t shared_bytes, int64_t rows, int64_t heads,
                       int64_t others) {
  const int64_t blocks = (rows + tiles.rows() - 1) / tiles.rows() * heads;
  const int64_t classes = (others + tiles.columns - 1) / tiles.columns;  // a byte each
  LaunchShape shape = ShapeForRows(blocks, tiles.threads(), shared_bytes + classes);
  shape.most_shared = kMostSharedOfGroups;
  return shape;
}

}  // namespace mgc::cuda
