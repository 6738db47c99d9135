#include "passes/graph/shard/claims.h"

namespace mgc {

bool Claims::Serves(AxisId axis) const {
  for (const AxisList& list : axes_) {
    if (list.Contains(axis)) return true;
  }
  return false;
}

bool Claims::MayAppend(int f, AxisId axis) const {
  const Factor& factor = rule_.factors[f];
  if (factor.whole || closed_[f] || blocked_.Contains(axis) || Serves(axis)) return false;
  if (factor.size <= 1) return false;
  FactorAxes with = axes_;
  with[f].push_back(axis);
  return Representable(rule_, with, mesh_);
}

void Claims::ClaimDim(const DimFactors& dim, const AxisList& wanted) {
  size_t at = 0;     // factor of the dim
  int position = 0;  // in its list of axes
  for (AxisId axis : wanted) {
    while (at < dim.size()) {
      const AxisList& list = axes_[dim[at]];
      if (position < list.size()) {
        if (list[position] != axis) return;  // cut otherwise already
        ++position;
        break;
      }
      if (MayAppend(dim[at], axis)) {
        axes_[dim[at]].push_back(axis);
        ++position;
        break;
      }
      const Factor& factor = rule_.factors[dim[at]];
      if (LocalSize({factor.size, ""}, list, mesh_) != 1) return;
      ++at;
      position = 0;
    }
    if (at == dim.size()) return;
  }
}

void Claims::Claim(const TensorFactors& factors, const Sharding& sharding) {
  for (size_t d = 0; d < factors.size(); ++d) ClaimDim(factors[d], sharding.dims[d]);
}

void Claims::ClaimClosed(const TensorFactors& factors, const Sharding& sharding) {
  Claim(factors, sharding);
  for (size_t d = 0; d < factors.size(); ++d) {
    if (!sharding.dims[d].empty()) continue;
    for (int f : factors[d]) closed_[f] = true;
  }
}

}  // namespace mgc
