#include "graph/plan/instr_collective.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr char kGroup[] = "group";
constexpr char kClasses[] = "classes";
constexpr char kEmbeddingGroup[] = "embedding";

const Slot& SlotAt(const Segment& segment, int slot) {
  return segment.slots[static_cast<size_t>(slot)];
}

int64_t TileBytes(const Slot& slot, const Mesh& mesh) {
  return LocalElements(slot.type, slot.sharding, mesh) * SizeOf(slot.type.dtype);
}

// Two numbers or more from 0 to `end`, ascending.
bool IsSetBelow(const std::vector<int64_t>& list, int64_t end) {
  const bool ascends =
      std::adjacent_find(list.begin(), list.end(), std::greater_equal<int64_t>()) == list.end();
  return list.size() >= 2 && ascends && list.front() >= 0 && list.back() < end;
}

std::string NameOfGroup(const Instr& instr, const std::vector<int>& classes) {
  return instr.attrs.Find(kClasses) != nullptr ? absl::StrCat("pp:", absl::StrJoin(classes, ","))
                                               : kEmbeddingGroup;
}

// Says `name` and leaves out `other`.
void SetAttr(Instr* instr, absl::string_view other, absl::string_view name, AttrValue value) {
  Attrs attrs;
  for (const Attrs::Entry& entry : instr->attrs) {
    if (entry.first != other) attrs.Set(entry.first, entry.second);
  }
  attrs.Set(name, std::move(value));
  instr->attrs = std::move(attrs);
}

}  // namespace

std::string NameOf(const InstrCollective& collective) {
  return absl::StrCat(NameOf(collective.kind()), " ", collective.group);
}

InstrCollective CollectiveOf(const Mesh& mesh, const std::vector<StagePlace>& stages,
                             const Segment& segment, const Instr& instr) {
  InstrCollective made;
  const bool joins = JoinsClasses(instr);
  if (joins) {
    absl::StatusOr<std::vector<int>> classes = JoinedClasses(mesh, stages, instr);
    MGC_CHECK(classes.ok()) << segment.name << ": " << classes.status().ToString();  // plan_c16
    made.classes = *std::move(classes);
  }
  made.label = instr.attrs.Text("label");
  for (size_t i = 0; i < instr.inputs.size(); ++i) {
    if (joins) {
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
  made.ranks = joins ? static_cast<int64_t>(made.classes.size()) : mesh.Size(made.axes());
  made.group = joins ? NameOfGroup(instr, made.classes) : mesh.GroupName(made.axes());
  return made;
}

std::vector<bool> WaitedFor(const Segment& segment) {
  std::vector<bool> waited_for(static_cast<size_t>(segment.num_collectives), false);
  for (const Instr& instr : segment.instrs) {
    if (instr.kind != InstrKind::kWait) continue;
    waited_for[static_cast<size_t>(instr.collective)] = true;
  }
  return waited_for;
}

absl::StatusOr<Collective> CollectiveOfPart(const Segment& segment, const Instr& instr,
                                            size_t part) {
  return CollectiveBetween(SlotAt(segment, instr.inputs[part]).sharding,
                           SlotAt(segment, instr.outputs[part]).sharding, instr.op->name);
}

std::vector<int> EndClasses(const std::vector<StagePlace>& stages) {
  if (stages.empty()) return {};
  const int first = stages.front().rank_class;
  const int last = stages.back().rank_class;
  if (first == last) return {first};
  return {std::min(first, last), std::max(first, last)};
}

bool JoinsClasses(const Instr& instr) {
  return instr.kind == InstrKind::kStart &&
         (instr.attrs.Find(kGroup) != nullptr || instr.attrs.Find(kClasses) != nullptr);
}

absl::StatusOr<std::vector<int>> JoinedClasses(const Mesh& mesh,
                                               const std::vector<StagePlace>& stages,
                                               const Instr& instr) {
  const AxisId pipeline = PipelineAxis(mesh);
  const int64_t num_classes = pipeline < 0 ? 0 : mesh.size(pipeline);
  const AttrValue* group = instr.attrs.Find(kGroup);
  const AttrValue* list = instr.attrs.Find(kClasses);
  const std::string* name = group == nullptr ? nullptr : std::get_if<std::string>(group);
  const auto* classes = list == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(list);
  if (list == nullptr && name != nullptr && *name == kEmbeddingGroup && num_classes > 0) {
    return EndClasses(stages);
  }
  if (group == nullptr && classes != nullptr && IsSetBelow(*classes, num_classes)) {
    return std::vector<int>(classes->begin(), classes->end());
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "joins the classes ", classes == nullptr ? "" : absl::StrJoin(*classes, ", "),
      name == nullptr ? "" : absl::StrCat("of group `", EscapeBytes(*name), "`"),
      "; it says group `embedding`, those of the first and the last stage, or two or more of the ",
      num_classes, " classes along pp, ascending"));
}

void SetJoinedClasses(const std::vector<int>& classes, const std::vector<StagePlace>& stages,
                      Instr* instr) {
  if (classes == EndClasses(stages)) return SetJoinsEnds(instr);
  SetAttr(instr, kGroup, kClasses, std::vector<int64_t>(classes.begin(), classes.end()));
}

void SetJoinsEnds(Instr* instr) { SetAttr(instr, kClasses, kGroup, std::string(kEmbeddingGroup)); }

int64_t RingRounds(CollectiveKind kind) {
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

int64_t RingWireBytes(CollectiveKind kind, int64_t payload_bytes, int64_t ranks) {
  const int64_t rounds = RingRounds(kind);
  const int64_t piece = payload_bytes / ranks;
  const int64_t rest = payload_bytes % ranks;
  return rounds * (ranks - 1) * piece + (rounds * (ranks - 1) * rest + ranks - 1) / ranks;
}

}  // namespace mgc
