#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "graph/base/file.h"
#include "graph/ir/assemble.h"
#include "graph/ir/op.h"
#include "graph/plan/data_input.h"
#include "graph/plan/instr_collective.h"
#include "graph/plan/plan_check_internal.h"

namespace mgc {
namespace {

// Collectives are numbered in the order of their starts; each wait comes behind its start.
void CheckNumbers(const Segment& segment, PlaceCheck* check) {
  if (!check->Require(segment.num_collectives >= 0, "plan_c8",
                      "a negative number of collectives")) {
    return;
  }
  int started = 0;
  std::vector<int> waited;
  for (const Instr& instr : segment.instrs) {
    if (instr.kind == InstrKind::kStart) {
      if (!check->Require(instr.collective == started, "plan_c8", "collective ", instr.collective,
                          " is started where ", started, " is next")) {
        return;
      }
      ++started;
    } else if (instr.kind == InstrKind::kWait) {
      check->Require(instr.collective < started, "plan_c8", "collective ", instr.collective,
                     " is waited for before it is started");
      waited.push_back(instr.collective);
    }
  }
  check->Require(started == segment.num_collectives, "plan_c8", started, " collectives of ",
                 segment.num_collectives, " are started");
  std::sort(waited.begin(), waited.end());
  check->Require(std::adjacent_find(waited.begin(), waited.end()) == waited.end(), "plan_c8",
                 "a collective is waited for twice");
}

void CheckWorkspace(const Plan& plan, const Segment& segment, PlaceCheck* check) {
  for (size_t i = 0; i < segment.instrs.size(); ++i) {
    const Instr& instr = segment.instrs[i];
    if (instr.kind != InstrKind::kCompute) continue;
    const int64_t bound = WorkspaceBound(segment, instr, plan.mesh, plan.machine.host);
    check->Require(bound <= segment.workspace_bytes, "plan_c15", "instruction ", i, " ",
                   instr.op->name, " may use ", bound, " bytes of workspace, the segment has ",
                   segment.workspace_bytes);
  }
}

// A load, whose slots exist; with `inputs` also that a step can be fed with it.
void CheckLoad(const Plan& plan, const Segment& segment, const Instr& instr,
               const std::string& name, const std::vector<DataInput>* inputs, PlaceCheck* check) {
  const AttrValue* data = instr.attrs.Find("name");
  if (!check->Require(instr.inputs.empty() && instr.outputs.size() == 1 && data != nullptr &&
                          std::holds_alternative<std::string>(*data),
                      "plan_c3", name, " loads one slot from the data input of attribute `name`")) {
    return;
  }
  if (inputs == nullptr) return;
  const std::string& named = std::get<std::string>(*data);
  const TensorType& type = segment.slots[static_cast<size_t>(instr.outputs[0])].type;
  const Sharding& sharding = segment.slots[static_cast<size_t>(instr.outputs[0])].sharding;
  const std::string what = absl::StrCat(" loads `", EscapeBytes(named), "` as ", type.ToString());
  check->Require(type.dtype == DType::kF32 || type.dtype == DType::kI64, "plan_c14", name, what,
                 "; a step is fed with f32 and i64");
  check->Require(sharding.storage.empty(), "plan_c14", name, what, " that is stored in pieces");
  if (plan.num_micro_batches >= 1) {  // plan_c1
    const int64_t samples = plan.global_batch_size / plan.num_micro_batches;
    check->Require(!type.dims.empty() && type.dims[0].size == samples, "plan_c14", name, what,
                   "; its first dim counts the ", samples, " samples of a micro-batch");
  }
  for (const DataInput& input : *inputs) {
    check->Require(input.name != named || TypesAgree(type, input.type), "plan_c14", name, what,
                   "; another load takes it as ", input.type.ToString());
  }
}

class SegmentCheck {
 public:
  SegmentCheck(const Plan& plan, const Segment& segment, const std::vector<DataInput>* inputs,
               Diagnostics* violations)
      : plan_(plan),
        inputs_(inputs),
        segment_(segment),
        check_(absl::StrCat("segment ", EscapeBytes(segment.name)), violations) {}

  void Run() {
    check_.Require(IsSize(segment_.transient_bytes) && IsSize(segment_.workspace_bytes), "plan_c7",
                   "transient or workspace bytes are negative");
    check_.Require(!segment_.formals.empty() && segment_.formals[0] == Formal{}, "plan_c5",
                   "the first formal is `transient`");
    bool sound = true;
    for (size_t s = 0; s < segment_.slots.size(); ++s) sound &= CheckSlot(s);
    if (!sound) return;
    const size_t before = check_.num_violations();
    for (size_t i = 0; i < segment_.instrs.size(); ++i) CheckInstr(i);
    CheckNumbers(segment_, &check_);
    if (check_.num_violations() == before) CheckWorkspace(plan_, segment_, &check_);
  }

 private:
  bool CheckSlot(size_t index) {
    const Slot& slot = segment_.slots[index];
    absl::Status status = CheckTypeBounds(slot.type);
    if (status.ok()) status = CheckShardingBounds(slot.type, slot.sharding, plan_.mesh);
    const std::string name = absl::StrCat("slot %", index, " ", EscapeBytes(slot.name));
    if (!check_.RequireOk(status, "plan_c2", name)) return false;
    bool sound = check_.Require(IsIndex(slot.formal, segment_.formals), "plan_c2", name,
                                " is in formal ", slot.formal, " of ", segment_.formals.size()) &&
                 check_.Require(IsSize(slot.offset) && IsSize(slot.bytes) && IsAligned(slot.offset),
                                "plan_c7", name, " has ", slot.bytes, " bytes at ", slot.offset);
    const int64_t needed = NeededBytes(slot.type, slot.sharding, plan_.mesh);
    sound = sound && check_.Require(slot.bytes >= needed, "plan_c2", name, " needs ", needed,
                                    " bytes and has ", slot.bytes);
    return sound &&
           check_.Require(slot.formal != 0 || slot.offset + slot.bytes <= segment_.transient_bytes,
                          "plan_c10", name, " ends at ", slot.offset + slot.bytes,
                          ", the transient region at ", segment_.transient_bytes);
  }

  const Slot& SlotAt(int index) const { return segment_.slots[static_cast<size_t>(index)]; }

  void CheckInstr(size_t index) {
    const Instr& instr = segment_.instrs[index];
    const std::string name = absl::StrCat("instruction ", index);
    for (const std::vector<int>* list : {&instr.inputs, &instr.outputs}) {
      for (int slot : *list) {
        if (!check_.Require(IsIndex(slot, segment_.slots), "plan_c3", name, " names slot %", slot,
                            " of ", segment_.slots.size())) {
          return;
        }
      }
    }
    check_.Require(instr.loc.file == kNone || (IsIndex(instr.loc.file, plan_.model.files()) &&
                                               instr.loc.line >= 0 && instr.loc.column >= 0),
                   "plan_c3", name, " has a place in file ", instr.loc.file,
                   ", which the model does not name");
    const bool numbered = instr.kind == InstrKind::kStart || instr.kind == InstrKind::kWait;
    const bool has_op = instr.kind == InstrKind::kCompute || instr.kind == InstrKind::kStart;
    if (!check_.Require(numbered
                            ? instr.collective >= 0 && instr.collective < segment_.num_collectives
                            : instr.collective == -1,
                        "plan_c8", name, " is of collective ", instr.collective, " of ",
                        segment_.num_collectives) ||
        !check_.Require(has_op == (instr.op != nullptr), "plan_c3", name,
                        has_op ? " has no op" : " has an op")) {
      return;
    }
    if (instr.kind == InstrKind::kCompute) CheckCompute(instr, name);
    if (instr.kind == InstrKind::kStart) CheckStart(instr, name);
    if (instr.kind == InstrKind::kWait) {
      check_.Require(instr.inputs.empty() && instr.outputs.empty(), "plan_c3", name,
                     " waits and has slots");
    }
    if (instr.kind == InstrKind::kLoad) {
      CheckLoad(plan_, segment_, instr, name, inputs_, &check_);
    }
  }

  void CheckCompute(const Instr& instr, const std::string& name) {
    CheckTypes(instr, instr.inputs, instr.outputs, name);
    if (!instr.op->collective || instr.inputs.size() != 1 || instr.outputs.size() != 1) return;
    if (const auto collective = PartOf(instr, 0, name)) {
      check_.Require(!collective->MovesData(), "plan_c17", name, " computes ", instr.op->name,
                     ", which moves data between ranks and must be started");
    }
  }

  // What the instruction's operand number `i` goes through; none after a violation.
  absl::optional<Collective> PartOf(const Instr& instr, size_t i, const std::string& name) {
    const absl::StatusOr<Collective> collective = CollectiveOfPart(segment_, instr, i);
    if (collective.ok()) return *collective;
    check_.Fail("plan_c9", name, " from ", ToString(SlotAt(instr.inputs[i]).sharding, plan_.mesh),
                " to ", ToString(SlotAt(instr.outputs[i]).sharding, plan_.mesh), ": ",
                collective.status().message());
    return absl::nullopt;
  }

  // Of an operand and its own result behind one formal; the proof looks at all others (memory_v3).
  void CheckInPlace(const Instr& instr, size_t i, const std::string& name) {
    const Slot& from = SlotAt(instr.inputs[i]);
    const Slot& to = SlotAt(instr.outputs[i]);
    const bool apart = from.formal != to.formal || from.offset + from.bytes <= to.offset ||
                       to.offset + to.bytes <= from.offset;
    const bool equal = from.offset == to.offset && from.bytes == to.bytes;
    check_.Require(apart || (equal && MayTakePlace(*instr.op, i, i)), "plan_c18", name, " puts %",
                   instr.outputs[i], " over its operand %", instr.inputs[i], "; ", instr.op->name,
                   MayTakePlace(*instr.op, i, i) ? " does so exactly or not at all"
                                                 : " may not work in place");
  }

  void CheckStart(const Instr& instr, const std::string& name) {
    if (!check_.Require(instr.op->collective && !instr.inputs.empty() &&
                            instr.inputs.size() == instr.outputs.size(),
                        "plan_c3", name, " starts what is no collective: `", instr.op->name,
                        "` of ", instr.inputs.size(), " slots into ", instr.outputs.size())) {
      return;
    }
    for (size_t i = 0; i < instr.inputs.size(); ++i) {
      CheckTypes(instr, {instr.inputs[i]}, {instr.outputs[i]}, name);
      CheckInPlace(instr, i, name);
    }
    if (JoinsClasses(instr)) return CheckJoins(instr, name);
    absl::optional<Collective> first;
    for (size_t i = 0; i < instr.inputs.size(); ++i) {
      const absl::optional<Collective> collective = PartOf(instr, i, name);
      if (!collective.has_value()) continue;
      if (!first.has_value()) first = collective;
      check_.Require(collective->MovesData(), "plan_c17", name, " starts ", instr.op->name,
                     ", which moves nothing between ranks");
      check_.Require(
          collective->kind == first->kind && collective->axes.AsSet() == first->axes.AsSet(),
          "plan_c17", name, " takes together ", NameOf(first->kind), " over ",
          plan_.mesh.GroupName(first->axes.AsSet()), " and ", NameOf(collective->kind), " over ",
          plan_.mesh.GroupName(collective->axes.AsSet()));
    }
  }

  // Who may run it is checked where it is called.
  void CheckJoins(const Instr& instr, const std::string& name) {
    check_.RequireOk(JoinedClasses(plan_.mesh, plan_.stages, instr).status(), "plan_c16", name);
    for (size_t i = 0; i < instr.inputs.size(); ++i) {
      check_.Require(SlotAt(instr.inputs[i]).sharding == SlotAt(instr.outputs[i]).sharding &&
                         instr.op->name == "all_reduce",
                     "plan_c9", name, " between stages is an all_reduce that keeps its sharding");
    }
  }

  void CheckTypes(const Instr& instr, const std::vector<int>& inputs,
                  const std::vector<int>& outputs, const std::string& name) {
    std::vector<const TensorType*> operands;
    operands.reserve(inputs.size());
    for (int slot : inputs) operands.push_back(&SlotAt(slot).type);
    const absl::StatusOr<std::vector<TensorType>> types =
        InferNode(*instr.op, instr.attrs, operands);
    if (!check_.RequireOk(types.status(), "plan_c3", name)) return;
    bool agree = types->size() == outputs.size();
    for (size_t i = 0; agree && i < outputs.size(); ++i) {
      agree = TypesAgree(SlotAt(outputs[i]).type, (*types)[i]);
    }
    check_.Require(agree, "plan_c3", name, ": ", instr.op->name, " makes results of other types");
  }

  const Plan& plan_;
  const std::vector<DataInput>* const inputs_;  // null: not to run
  const Segment& segment_;
  PlaceCheck check_;
};

}  // namespace

void CheckSegment(const Plan& plan, const Segment& segment, const std::vector<DataInput>* inputs,
                  Diagnostics* violations) {
  SegmentCheck(plan, segment, inputs, violations).Run();
}

int64_t NeededBytes(const TensorType& type, const Sharding& sharding, const Mesh& mesh) {
  int64_t bytes = SizeOf(type.dtype);
  for (size_t i = 0; i < type.dims.size(); ++i) {
    const int64_t size = LocalSize(type.dims[i], sharding.dims[i], mesh);
    if (size > kMaxPlanBytes / bytes) return kMaxPlanBytes + 1;
    bytes *= size;
  }
  return LocalElements(type, sharding, mesh) * SizeOf(type.dtype);
}

std::vector<int64_t> FormalEnds(const Segment& segment) {
  std::vector<int64_t> ends(segment.formals.size(), 0);
  for (const Slot& slot : segment.slots) {
    int64_t& end = ends[static_cast<size_t>(slot.formal)];
    end = std::max(end, slot.offset + slot.bytes);
  }
  if (!ends.empty()) ends[0] = std::max(ends[0], segment.transient_bytes);
  return ends;
}

}  // namespace mgc
