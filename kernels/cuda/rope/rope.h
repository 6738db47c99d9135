// Rotary position embedding (Su et al., arXiv:2104.09864) in its rotate-half form, issued to a
// stream: dims i and i + rotated/2 of a head turn together by the angle position · frequency[i]
// (graph/ops/rope_frequencies.h).

#ifndef MGC_KERNELS_CUDA_ROPE_ROPE_H_
#define MGC_KERNELS_CUDA_ROPE_ROPE_H_

#include <cstdint>

#include "kernels/cuda/launch_shape.h"

namespace mgc::cuda {

// x, y: [tokens, heads, d], of which the first `rotated` elements turn, an even number, and the
// others stay; token t stands at positions[t % positions_size]. `inverse` turns back, which is the
// gradient.
struct RopeShape {
  int64_t tokens = 0;
  int64_t heads = 0;
  int64_t d = 0;
  int64_t rotated = 0;
  int64_t positions_size = 0;
  bool inverse = false;
};

// `y` may be `x`. `frequency` has rotated/2 numbers of the host. T is float, Bfloat16 or Float16.
// The angle and its reduction are in double.
template <class T>
int Rope(Stream stream, const RopeShape& shape, const T* x, const int64_t* positions,
         const double* frequency, T* y);

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_ROPE_ROPE_H_
