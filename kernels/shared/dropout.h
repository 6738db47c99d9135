// What dropout draws from and which element draws what, in plain numbers for host and device code.

#ifndef MGC_KERNELS_SHARED_DROPOUT_H_
#define MGC_KERNELS_SHARED_DROPOUT_H_

#include <cstdint>

namespace mgc {

// One random stream (graph/base/random.h): the seed and the hash of the parameter's or op's name.
struct RandomStream {
  uint64_t seed = 0;
  uint64_t stream = 0;
};

// What of a dropout does not depend on the element.
struct DropoutRule {
  RandomStream key;
  uint32_t threshold;  // keep iff the element's bits >= threshold
  float scale;         // of what is kept; 0 when nothing is
};

DropoutRule MakeDropoutRule(double p, const RandomStream& stream);

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
  // The same indices with as few dims as possible.
  IndexGrid Merged() const;
  // Of a merged grid: how many consecutive indices its elements have, from each multiple on.
  int64_t run() const { return rank > 0 && stride[rank - 1] == 1 ? size[rank - 1] : 1; }
};

// The logical index of an element.
constexpr uint64_t IndexOf(const IndexGrid& grid, int64_t element) {
  uint64_t index = grid.base;
  int64_t rest = element;
  for (int d = grid.rank - 1; d > 0; --d) {
    index += static_cast<uint64_t>(rest % grid.size[d]) * static_cast<uint64_t>(grid.stride[d]);
    rest /= grid.size[d];
  }
  if (grid.rank > 0) index += static_cast<uint64_t>(rest) * static_cast<uint64_t>(grid.stride[0]);
  return index;
}

}  // namespace mgc

#endif  // MGC_KERNELS_SHARED_DROPOUT_H_
