// Random numbers of graph/base/random.h in bulk, and dropout.
#ifndef MGC_KERNELS_CPU_RANDOM_RANDOM_H_
#define MGC_KERNELS_CPU_RANDOM_RANDOM_H_

#include <cstdint>

#include "kernels/parallel.h"

namespace mgc::cpu {

// One random stream (graph/base/random.h): the seed and the hash of the parameter's or op's name.
struct RandomStream {
  uint64_t seed = 0;
  uint64_t stream = 0;
};

// Logical indices of a tile's elements, which are taken in row-major order: element (i0, i1, ...)
// has index base + sum of i_d * stride[d], modulo 2^64.
struct IndexGrid {
  static constexpr int kMaxRank = 8;
  uint64_t base = 0;
  int rank = 0;  // 0: a single element
  int64_t size[kMaxRank] = {};
  int64_t stride[kMaxRank] = {};

  // Indices base, base + 1, ...
  static IndexGrid Run(uint64_t base, int64_t n);
  int64_t elements() const;
};

// What of a dropout does not depend on the element.
struct DropoutRule {
  RandomStream key;
  uint32_t threshold;  // keep iff the element's bits >= threshold
  float scale;         // of what is kept; 0 when nothing is
};

DropoutRule MakeDropoutRule(double p, const RandomStream& stream);

// out[i] = std * RandomNormal(seed, stream, index of element i), within 1e-9 * std before it is
// rounded to a float.
void FillNormal(Parallel& parallel, const RandomStream& stream, const IndexGrid& grid, double std,
                float* out);

// y = x / (1 - p) where the element is kept, else 0 (also where x is not finite). It is its own
// gradient. `y` may be `x`. T is float, Bfloat16 or Float16.
template <class T>
void Dropout(Parallel& parallel, const RandomStream& stream, const IndexGrid& grid, double p,
             const T* x, T* y);

}  // namespace mgc::cpu

#endif  // MGC_KERNELS_CPU_RANDOM_RANDOM_H_
