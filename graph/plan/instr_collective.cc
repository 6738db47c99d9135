#include "graph/plan/instr_collective.h"

#include <algorithm>
#include <variant>

#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr char kGroup[] = "group";
constexpr char kEmbeddingGroup[] = "embedding";
constexpr int64_t kEnds = 2;  // classes that hold copies of a tied weight

const Slot& SlotAt(const Segment& segment, int slot) {
  return segment.slots[static_cast<size_t>(slot)];
}

int64_t TileBytes(const Slot& slot, const Mesh& mesh) {
  return LocalElements(slot.type, slot.sharding, mesh) * SizeOf(slot.type.dtype);
}

// How often each piece goes around a ring.
int64_t RoundsOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllReduceMax:
      return 2;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
      return 1;
    case CollectiveKind::kSlice:
    case CollectiveKind::kLift:
      break;
  }
  return 0;
}

}  // namespace

InstrCollective CollectiveOf(const Mesh& mesh, const Segment& segment, const Instr& instr) {
  InstrCollective made;
  made.joins_ends = JoinsEnds(instr);
  made.label = instr.attrs.Text("label");
  for (size_t i = 0; i < instr.inputs.size(); ++i) {
    if (made.joins_ends) {
      Collective sum;
      sum.axes.push_back(PipelineAxis(mesh));
      made.parts.push_back(sum);
    } else {
      const absl::StatusOr<Collective> part = CollectiveOfPart(segment, instr, i);
      MGC_CHECK(part.ok()) << segment.name << ": " << part.status().ToString();  // plan_c9
      made.parts.push_back(*part);
    }
    made.payload_bytes += std::max(TileBytes(SlotAt(segment, instr.inputs[i]), mesh),
                                   TileBytes(SlotAt(segment, instr.outputs[i]), mesh));
  }
  made.ranks = made.joins_ends ? kEnds : mesh.Size(made.axes());
  return made;
}

absl::StatusOr<Collective> CollectiveOfPart(const Segment& segment, const Instr& instr,
                                            size_t part) {
  return CollectiveBetween(SlotAt(segment, instr.inputs[part]).sharding,
                           SlotAt(segment, instr.outputs[part]).sharding, instr.op->name);
}

absl::optional<std::string> GroupNamed(const Instr& instr) {
  const AttrValue* group = instr.attrs.Find(kGroup);
  if (instr.kind != InstrKind::kStart || group == nullptr) return absl::nullopt;
  const std::string* name = std::get_if<std::string>(group);
  return name == nullptr ? "" : *name;
}

bool JoinsEnds(const Instr& instr) { return GroupNamed(instr) == kEmbeddingGroup; }

void SetJoinsEnds(Instr* instr) { instr->attrs.Set(kGroup, std::string(kEmbeddingGroup)); }

std::string GroupName(const InstrCollective& collective, const Mesh& mesh) {
  return collective.joins_ends ? kEmbeddingGroup : mesh.GroupName(collective.axes());
}

int64_t RingWireBytes(CollectiveKind kind, int64_t payload_bytes, int64_t ranks) {
  const int64_t rounds = RoundsOf(kind);
  const int64_t piece = payload_bytes / ranks;
  const int64_t rest = payload_bytes % ranks;
  return rounds * (ranks - 1) * piece + (rounds * (ranks - 1) * rest + ranks - 1) / ranks;
}

}  // namespace mgc
