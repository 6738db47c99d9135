#include "passes/fold/layer_map.h"

#include <numeric>
#include <utility>

#include "graph/base/status.h"

namespace mgc {

LayerMap::LayerMap(int num_layers)
    : kept_(static_cast<size_t>(num_layers)),
      first_(static_cast<size_t>(num_layers)),
      count_(static_cast<size_t>(num_layers), 1),
      rounds_(static_cast<size_t>(num_layers), 1) {
  std::iota(kept_.begin(), kept_.end(), 0);
  first_ = kept_;
}

LayerMap::LayerMap(std::vector<int> kept, std::vector<int> rounds, bool one_place)
    : kept_(std::move(kept)), rounds_(std::move(rounds)), one_place_(one_place) {
  for (size_t layer = 0; layer < kept_.size(); ++layer) {
    if (kept_[layer] == num_kept()) {
      first_.push_back(static_cast<int>(layer));
      count_.push_back(0);
    }
    MGC_CHECK(kept_[layer] < num_kept()) << "layer " << layer << " is out of order";
    ++count_[static_cast<size_t>(kept_[layer])];
  }
  MGC_CHECK(rounds_.size() == first_.size()) << rounds_.size() << " rounds";
}

int LayerMap::KeptFor(int layer) const {
  if (layer < 0) return layer;
  return layer < num_layers() ? kept_[static_cast<size_t>(layer)] : num_kept();
}

int LayerMap::FirstOf(int kept) const {
  if (kept < 0) return kept;
  return kept < num_kept() ? first_[static_cast<size_t>(kept)] : num_layers();
}

int LayerMap::CountOf(int kept) const {
  return kept < 0 || kept >= num_kept() ? 1 : count_[static_cast<size_t>(kept)];
}

int LayerMap::RoundOf(int kept) const {
  return kept < 0 || kept >= num_kept() ? 1 : rounds_[static_cast<size_t>(kept)];
}

}  // namespace mgc
