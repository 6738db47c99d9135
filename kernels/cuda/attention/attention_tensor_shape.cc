#include "kernels/cuda/attention/attention_tensor_shape.h"

#include <cmath>

namespace mgc::cuda {
namespace {

bool AreLaunchable(const AttentionShape& s, int dim, bool plain) {
  const int64_t heads = s.batch * s.heads;
  return IsLaunchable(TensorShape(ForwardTiles(plain), dim, s.queries, heads, s.keys)) &&
         IsLaunchable(TensorShape(QueryGradTiles(dim, plain), dim, s.queries, heads, s.keys)) &&
         IsLaunchable(TensorShape(KeyGradTiles(dim, plain), dim, s.keys, heads, s.queries));
}

}  // namespace

bool TensorCoresTake(const AttentionShape& s) {
  const int dim = TensorDim(s.dim);
  if (dim == 0 || !(s.scale > 0 && std::isfinite(s.scale))) return false;
  return AreLaunchable(s, dim, true) && AreLaunchable(s, dim, false);
}

LaunchShape TensorShape(const TensorTiles& tiles, int dim, int64_t rows, int64_t heads,
                        int64_t others) {
  const int64_t blocks = (rows + tiles.rows() - 1) / tiles.rows() * heads;
  const int64_t classes = (others + tiles.columns - 1) / tiles.columns;  // a byte each
  return ShapeForRows(blocks, tiles.threads(), tiles.shared_bytes(dim) + classes);
}

}  // namespace mgc::cuda
