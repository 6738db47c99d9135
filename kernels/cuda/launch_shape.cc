#include "kernels/cuda/launch_shape.h"

#include <algorithm>

namespace mgc::cuda {

bool IsLaunchable(const LaunchShape& shape) {
  return shape.grid_x <= kMostBlocksX && shape.grid_y <= kMostBlocksYZ &&
         shape.grid_z <= kMostBlocksYZ && shape.block <= kMostThreads && shape.shared_bytes >= 0 &&
         shape.shared_bytes <= shape.most_shared;
}

LaunchShape ShapeFor(int64_t threads, int block, int64_t most_blocks) {
  LaunchShape shape;
  shape.grid_x = static_cast<unsigned>(std::min((threads + block - 1) / block, most_blocks));
  shape.block = static_cast<unsigned>(block);
  return shape;
}

LaunchShape ShapeForRows(int64_t rows, int block, int64_t shared_bytes) {
  LaunchShape shape;
  shape.grid_x = static_cast<unsigned>(std::min(rows, kMostBlocksX));
  shape.block = static_cast<unsigned>(block);
  shape.shared_bytes = shared_bytes;
  return shape;
}

}  // namespace mgc::cuda
