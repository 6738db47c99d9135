// Launches of attention on tensor cores: which uses they take, and their blocks; host code.

#ifndef MGC_KERNELS_CUDA_ATTENTION_ATTENTION_TENSOR_SHAPE_H_
#define MGC_KERNELS_CUDA_ATTENTION_ATTENTION_TENSOR_SHAPE_H_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/launch_shape.h"
#include "kernels/shared/attention_shape.h"

namespace mgc::cuda {

// How a kernel cuts its side of the pairs, and the other's.
struct TensorTiles {
  int warps;
  int bands;    // of 16 rows, of a warp
  int columns;  // rows of the other side in a tile
  int kept;     // tiles of its own rows in shared memory
  int staged;   // tiles of the other side there
  int floats;   // for each of their rows

  constexpr int rows() const { return warps * bands * 16; }
  constexpr int threads() const { return warps * 32; }
  // Of elements of 16 bits.
  constexpr int64_t shared_bytes(int dim) const {
    return int64_t{2} * dim * (kept * rows() + staged * columns) + int64_t{4} * floats * columns;
  }
};

// Kernels are plain where there is neither a cap nor dropout, whose arithmetic wants registers: the
// others have one band a warp.
//
// Queries; their rows of q; tiles of k and v.
constexpr TensorTiles ForwardTiles(bool plain) {
  return plain ? TensorTiles{4, 2, 64, 1, 2, 0} : TensorTiles{8, 1, 64, 1, 2, 0};
}

// Queries; their rows of q and d_o; tiles of k and v, one pair in use and one on its way.
constexpr TensorTiles QueryGradTiles(int dim, bool plain) {
  return plain ? TensorTiles{4, 2, dim == 64 ? 64 : 32, 2, 4, 0} : TensorTiles{8, 1, 32, 2, 4, 0};
}

// Keys; their rows of k and v; tiles of q and d_o, as above, with lse and delta.
constexpr TensorTiles KeyGradTiles(int dim, bool plain) {
  return plain && dim == 64 ? TensorTiles{4, 2, 32, 2, 4, 4} : TensorTiles{8, 1, 32, 2, 4, 4};
}

// The dim that kernels are made for: 64, or 128; 0 where there is none.
constexpr int TensorDim(int64_t dim) {
  if (dim <= 0 || dim % 8 != 0 || dim > 128) return 0;
  return dim <= 64 ? 64 : 128;
}

constexpr bool IsPlain(const AttentionShape& shape, const AttentionDropout& dropout) {
  return shape.cap == 0 && !(dropout.p > 0);
}

// issue(dim, plain) for the kernel that is made for a use, both as constants: an
// std::integral_constant and an std::bool_constant.
template <class Issue>
int ForKind(const AttentionShape& shape, const AttentionDropout& dropout, const Issue& issue) {
  const auto of_dim = [&](auto dim) {
    return IsPlain(shape, dropout) ? issue(dim, std::true_type()) : issue(dim, std::false_type());
  };
  return TensorDim(shape.dim) == 64 ? of_dim(std::integral_constant<int, 64>())
                                    : of_dim(std::integral_constant<int, 128>());
}

// Whether the kernels take a use whose operands are aligned to 16 bytes. Their softmax takes maxima
// before it scales, and the classes of all tiles are in shared memory.
bool TensorCoresTake(const AttentionShape& shape);

// Blocks for `rows` rows of each of `heads` heads; `others` rows are on the other side.
LaunchShape TensorShape(const TensorTiles& tiles, int dim, int64_t rows, int64_t heads,
                        int64_t others);

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_ATTENTION_ATTENTION_TENSOR_SHAPE_H_
