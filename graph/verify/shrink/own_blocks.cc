#include "graph/verify/shrink/own_blocks.h"

#include <algorithm>

#include "graph/types/layer_names.h"

namespace mgc {

bool HoldAlike(const Plan& plan, const EqualLayers& layers, const HeldBlock* before,
               const HeldBlock* now) {
  if (before == nullptr || now == nullptr) return before == now;
  if (now->block != before->block || now->owner != before->owner) return false;
  const ParamBlock& block = plan.blocks[static_cast<size_t>(now->block)];
  return std::all_of(block.entries.begin(), block.entries.end(), [&](const ParamEntry& entry) {
    const ValueId param = plan.model.FindValue(NameForLayer(entry.name, now->layer));
    return param != kNone && layers.Owns(now->layer, param);
  });
}

bool LieAlike(const HeldBlock* before, const Binding& there, const HeldBlock* now,
              const Binding& here, Region region) {
  return before != nullptr && now != nullptr && there.base == BaseKind::kAbsolute &&
         here.base == BaseKind::kAbsolute &&
         here.offset - BlockBase(*now, region) == there.offset - BlockBase(*before, region);
}

}  // namespace mgc
