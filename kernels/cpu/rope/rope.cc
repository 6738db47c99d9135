#include "kernels/cpu/rope/rope.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/simd/simd.h"

#define MGC_SIMD_BODY "kernels/cpu/rope/rope.inc"
#include "kernels/cpu/simd/simd_each.inc"

namespace mgc::cpu {
namespace {

constexpr int64_t kPairs = 256;  // of dims, whose angles are computed at a time

}  // namespace

template <class T>
void Rope(Parallel& parallel, int64_t tokens, int64_t heads, int64_t d, int64_t rotated, const T* x,
          const int64_t* positions, int64_t positions_size, const double* frequency, bool inverse,
          T* y) {
  const int64_t half = rotated / 2;
  const int64_t grain = std::max<int64_t>(8192 / std::max<int64_t>(heads * d, 1), 1);
  parallel.For(tokens, grain, [&](int64_t begin, int64_t end) {
    float cosine[kPairs];
    float sine[kPairs];
    for (int64_t t = begin; t < end; ++t) {
      const double position = static_cast<double>(positions[t % positions_size]);
      for (int64_t first = 0; first < half; first += kPairs) {
        const int64_t pairs = std::min(kPairs, half - first);
        MGC_SIMD_CALL(parallel, CosSin, position, frequency + first, pairs, inverse, cosine, sine);
        const int64_t at = t * heads * d + first;
        MGC_SIMD_CALL(parallel, RotateHeads, heads, d, half, pairs, x + at, cosine, sine, y + at);
      }
      if (x == y || rotated == d) continue;
      for (int64_t head = t * heads * d; head < (t + 1) * heads * d; head += d) {
        std::copy(x + head + rotated, x + head + d, y + head + rotated);
      }
    }
  });
}

template void Rope(Parallel&, int64_t, int64_t, int64_t, int64_t, const float*, const int64_t*,
                   int64_t, const double*, bool, float*);
template void Rope(Parallel&, int64_t, int64_t, int64_t, int64_t, const Bfloat16*, const int64_t*,
                   int64_t, const double*, bool, Bfloat16*);
template void Rope(Parallel&, int64_t, int64_t, int64_t, int64_t, const Float16*, const int64_t*,
                   int64_t, const double*, bool, Float16*);

}  // namespace mgc::cpu
