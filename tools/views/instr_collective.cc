#include "tools/views/instr_collective.h"

#include <algorithm>

#include "graph/ir/collective.h"
#include "graph/types/sharding.h"

namespace mgc {
namespace {

int64_t RoomOf(const Slot& slot, const Mesh& mesh) {
  return LocalElements(slot.type, slot.sharding, mesh) * SizeOf(slot.type.dtype);
}

}  // namespace

InstrCollective CollectiveOf(const Plan& plan, const Segment& segment, const Instr& instr) {
  InstrCollective result;
  result.label = instr.attrs.Text("label");
  result.op = instr.op != nullptr ? instr.op->name : "?";
  const bool tied = instr.attrs.Text("group") == "embedding";
  if (tied) {
    result.op = std::string(NameOf(CollectiveKind::kAllReduce));
    result.group = "pp";
    result.ranks = 2;
  }
  const size_t tensors = std::min(instr.inputs.size(), instr.outputs.size());
  for (size_t i = 0; i < tensors; ++i) {
    const Slot& from = segment.slots[static_cast<size_t>(instr.inputs[i])];
    const Slot& to = segment.slots[static_cast<size_t>(instr.outputs[i])];
    result.payload_bytes += std::max(RoomOf(from, plan.mesh), RoomOf(to, plan.mesh));
    if (i > 0 || instr.op == nullptr || tied) continue;
    const auto collective = CollectiveBetween(from.sharding, to.sharding, instr.op->name);
    if (!collective.ok()) continue;
    result.op = std::string(NameOf(collective->kind));
    result.group = plan.mesh.GroupName(collective->axes.AsSet());
    result.ranks = plan.mesh.Size(collective->axes);
  }
  return result;
}

}  // namespace mgc
