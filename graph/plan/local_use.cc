#include "graph/plan/local_use.h"

#include "graph/types/sharding.h"

namespace mgc {
namespace {

// What a rank holds of a slot, as a type without names.
TensorType TileOf(const Slot& slot, const Mesh& mesh) {
  TensorType tile{slot.type.dtype, {}};
  for (int64_t size : LocalShape(slot.type, slot.sharding, mesh)) {
    tile.dims.push_back({size, "", 1});
  }
  return tile;
}

}  // namespace

LocalUse::LocalUse(const Segment& segment, const Instr& instr, const Mesh& mesh) : instr_(instr) {
  tiles_.reserve(instr.inputs.size() + instr.outputs.size());
  const auto add = [&](const std::vector<int>& slots, std::vector<const TensorType*>* list) {
    for (int slot : slots) {
      tiles_.push_back(TileOf(segment.slots[static_cast<size_t>(slot)], mesh));
      list->push_back(&tiles_.back());
    }
  };
  add(instr.inputs, &operands_);
  add(instr.outputs, &results_);
}

}  // namespace mgc
