// Rotary position embedding (Su et al., arXiv:2104.09864) in its rotate-half form: dims i and i +
// rotated/2 of a head turn together by the angle position · frequency[i]
// (graph/ops/rope_frequencies.h).
#ifndef MGC_KERNELS_CPU_ROPE_ROPE_H_
#define MGC_KERNELS_CPU_ROPE_ROPE_H_

#include <cstdint>

#include "kernels/parallel.h"

namespace mgc::cpu {

// x, y: [tokens, heads, d], of which the first `rotated` elements turn, an even number, and the
// others stay; token t stands at positions[t % positions_size]. `inverse` turns back, which is the
// gradient. `y` may be `x`. T is float, Bfloat16 or Float16. The angle and its reduction are in
// double.
template <class T>
void Rope(Parallel& parallel, int64_t tokens, int64_t heads, int64_t d, int64_t rotated, const T* x,
          const int64_t* positions, int64_t positions_size, const double* frequency, bool inverse,
          T* y);

}  // namespace mgc::cpu

#endif  // MGC_KERNELS_CPU_ROPE_ROPE_H_
