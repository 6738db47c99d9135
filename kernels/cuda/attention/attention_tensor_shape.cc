#include "kernels/cuda/attention/attention_tensor_shape.h"

#include <cmath>

namespace mgc::cuda {

bool TensorCoresTake(const AttentionShape& s) {
  const int dim = TensorDim(s.dim);
  if (dim == 0 || !(s.scale > 0 && std::isfinite(s.scale))) return false;
  return IsLaunchable(TensorShape(kForwardTiles, dim, s.queries, s.batch * s.heads, s.keys));
}

LaunchShape TensorShape(const TensorTiles& tiles, int dim, int64_t rows, int64_t heads,
                        int64_t others) {
  const int64_t blocks = (rows + tiles.rows() - 1) / tiles.rows() * heads;
  const int64_t classes = (others + tiles.columns - 1) / tiles.columns;  // a byte each
  return ShapeForRows(blocks, tiles.threads(), tiles.shared_bytes(dim) + classes);
}

}  // namespace mgc::cuda
