#include "passes/fold/layer_map.h"

#include <numeric>
#include <utility>

#include "graph/base/status.h"

namespace mgc {

LayerMap::LayerMap(int num_layers)
    : kept_(static_cast<size_t>(num_layers)),
      first_(static_cast<size_t>(num_layers)),
      count_(static_cast<size_t>(num_layers), 1),
      kinds_(static_cast<size_t>(num_layers)) {
  std::iota(kept_.begin(), kept_.end(), 0);
  first_ = kinds_ = kept_;
}

LayerMap::LayerMap(std::vector<int> kept, std::vector<int> kinds, bool one_place)
    : kept_(std::move(kept)), kinds_(std::move(kinds)), one_place_(one_place) {
  for (size_t layer = 0; layer < kept_.size(); ++layer) {
    if (kept_[layer] == num_kept()) {
      first_.push_back(static_cast<int>(layer));
      count_.push_back(0);
    }
    MGC_CHECK(kept_[layer] < num_kept()) << "layer " << layer << " is out of order";
    ++count_[static_cast<size_t>(kept_[layer])];
  }
  MGC_CHECK(kinds_.size() == first_.size()) << "kinds of " << kinds_.size() << " layers";
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

std::vector<int> LayerMap::OfItsKind(int kept) const {
  if (kept < 0 || kept >= num_kept()) return {kept};
  std::vector<int> of_kind;
  for (int other = 0; other < num_kept(); ++other) {
    const bool same = kinds_[static_cast<size_t>(other)] == kinds_[static_cast<size_t>(kept)];
    if (same) of_kind.push_back(other);
  }
  return of_kind;
}

}  // namespace mgc
