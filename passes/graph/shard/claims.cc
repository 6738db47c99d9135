#include "passes/graph/shard/claims.h"

namespace mgc {

bool Claims::Serves(AxisId axis) const {
  for (const AxisList& list : axes_) {
    if (list.Contains(axis)) return true;
  }
  return false;
}

absl::optional<ClaimRefusal> Claims::Refuses(int f, AxisId axis) const {
  const Factor& factor = rule_.factors[f];
  if (factor.whole) return ClaimRefusal::kWhole;
  if (closed_[f]) return ClaimRefusal::kClosed;
  if (blocked_.Contains(axis)) return ClaimRefusal::kCarried;
  if (Serves(axis)) return ClaimRefusal::kServes;
  if (factor.size <= 1) return ClaimRefusal::kTooSmall;
  FactorAxes with = axes_;
  with[f].push_back(axis);
  if (!Representable(rule_, with, mesh_)) return ClaimRefusal::kUnequal;
  return absl::nullopt;
}

void Claims::Take(int factor, AxisId axis, int who) {
  axes_[factor].push_back(axis);
  taken_.push_back({factor, axis, who});
}

void Claims::Refuse(RefusedClaim refused) {
  for (const TakenClaim& taken : taken_) {
    if (taken.axis == refused.axis) refused.holder = taken.who;
  }
  refused_.push_back(refused);
}

int Claims::HolderOf(int factor, AxisId axis) const {
  for (const TakenClaim& taken : taken_) {
    if (taken.factor == factor && taken.axis == axis) return taken.who;
  }
  return -1;
}

void Claims::ClaimDim(const DimFactors& factors, const AxisList& wanted, int dim, int who) {
  size_t at = 0;     // factor of the dim
  int position = 0;  // in its list of axes
  for (AxisId axis : wanted) {
    absl::optional<ClaimRefusal> refused;
    while (at < factors.size()) {
      const AxisList& list = axes_[factors[at]];
      if (position < list.size()) {
        if (list[position] != axis) {  // cut otherwise already
          return Refuse({dim, axis, ClaimRefusal::kOtherwise, who});
        }
        ++position;
        break;
      }
      refused = Refuses(factors[at], axis);
      if (!refused.has_value()) {
        Take(factors[at], axis, who);
        ++position;
        break;
      }
      const Factor& factor = rule_.factors[factors[at]];
      if (LocalSize({factor.size, ""}, list, mesh_) != 1) {
        return Refuse({dim, axis, *refused, who});
      }
      ++at;
      position = 0;
    }
    if (at == factors.size()) {
      return Refuse({dim, axis, refused.value_or(ClaimRefusal::kTooSmall), who});
    }
  }
}

void Claims::Claim(const TensorFactors& factors, const Sharding& sharding, int who) {
  for (size_t d = 0; d < factors.size(); ++d) {
    ClaimDim(factors[d], sharding.dims[d], static_cast<int>(d), who);
  }
}

void Claims::ClaimClosed(const TensorFactors& factors, const Sharding& sharding, int who) {
  Claim(factors, sharding, who);
  for (size_t d = 0; d < factors.size(); ++d) {
    if (!sharding.dims[d].empty()) continue;
    for (int f : factors[d]) closed_[f] = true;
  }
}

}  // namespace mgc
