#include "kernels/shared/dropout.h"

#include <algorithm>

#include "graph/base/random.h"

namespace mgc {

DropoutRule MakeDropoutRule(double p, const RandomStream& stream) {
  return {stream, static_cast<uint32_t>(std::min<uint64_t>(DropThreshold(p), 0xffffffffu)),
          p < 1 ? static_cast<float>(1 / (1 - p)) : 0.0f};
}

IndexGrid IndexGrid::Run(uint64_t base, int64_t n) {
  IndexGrid grid;
  grid.base = base;
  grid.rank = 1;
  grid.size[0] = n;
  grid.stride[0] = 1;
  return grid;
}

int64_t IndexGrid::elements() const {
  int64_t n = 1;
  for (int d = 0; d < rank; ++d) n *= size[d];
  return n;
}

IndexGrid IndexGrid::Merged() const {
  IndexGrid merged;
  merged.base = base;
  for (int d = 0; d < rank; ++d) {
    if (size[d] == 1) continue;
    const int last = merged.rank - 1;
    if (last >= 0 && merged.stride[last] == size[d] * stride[d]) {
      merged.size[last] *= size[d];
      merged.stride[last] = stride[d];
    } else {
      merged.size[merged.rank] = size[d];
      merged.stride[merged.rank++] = stride[d];
    }
  }
  return merged;
}

}  // namespace mgc
