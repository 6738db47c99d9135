#include "graph/verify/meaning/backward_values.h"

#include <algorithm>
#include <utility>

#include "graph/eval/eval.h"

namespace mgc {

void BackwardValues::Add(ResidueTensor whole) {
  const size_t value = values_.size();
  for (const ResiduePair& number : whole.real) {
    std::vector<size_t>& holders = by_number_[number.a];
    if (holders.empty() || holders.back() != value) holders.push_back(value);
  }
  shapes_.insert(whole.shape);
  values_.push_back(std::move(whole));
}

bool BackwardValues::Has(const ResidueTensor& tile, const TensorType& type,
                         const Sharding& sharding, const Mesh& mesh, int64_t rank) const {
  const auto number = std::find_if(tile.real.begin(), tile.real.end(),
                                   [](const ResiduePair& pair) { return !pair.IsZero(); });
  if (number == tile.real.end()) return true;
  const auto found = by_number_.find(number->a);
  if (found == by_number_.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [&](size_t value) {
    const ResidueTensor& whole = values_[value];
    return whole.shape == SizesOf(type) &&
           CutTile(whole, type, sharding, mesh, rank).real == tile.real;
  });
}

}  // namespace mgc
