// Which layers of a chunk are left out of what is executed for a plan's meaning.

#ifndef MGC_GRAPH_VERIFY_SHRINK_LAYER_GAPS_H_
#define MGC_GRAPH_VERIFY_SHRINK_LAYER_GAPS_H_

#include <vector>

namespace mgc {

// Layers `first` to `last`, both included. `first - 1` and `last + 1` are executed and equal to
// them.
struct LayerGap {
  int first = 0;
  int last = 0;
};

// The gaps among the layers of a chunk that begins with `first_layer`. `repeats[i]`: whether its
// i-th layer is equal to the one before it; what the first entry says does not matter. Of each run
// of equal layers the first two and the last are executed.
std::vector<LayerGap> GapsOf(int first_layer, const std::vector<bool>& repeats);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_SHRINK_LAYER_GAPS_H_
