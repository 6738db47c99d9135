#include "graph/verify/shrink/layer_gaps.h"

#include <cstddef>

namespace mgc {

std::vector<LayerGap> GapsOf(int first_layer, const std::vector<bool>& repeats) {
  constexpr size_t kExecuted = 3;  // of a run
  std::vector<LayerGap> gaps;
  for (size_t begin = 0, end = 0; begin < repeats.size(); begin = end) {
    end = begin + 1;
    while (end < repeats.size() && repeats[end]) ++end;
    if (end - begin <= kExecuted) continue;
    gaps.push_back(
        {first_layer + static_cast<int>(begin) + 2, first_layer + static_cast<int>(end) - 2});
  }
  return gaps;
}

}  // namespace mgc
