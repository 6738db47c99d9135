#include "graph/verify/step_walk_tables.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "graph/collective.h"

namespace mgc {
namespace {

// Of a ref that exists: chunks and micro-batches are below 2^29 and 2^32.
template <typename Ref>
uint64_t KeyOf(const Ref& ref) {
  return (static_cast<uint64_t>(ref.chunk) << 2 | static_cast<uint64_t>(ref.kind)) << 32 |
         static_cast<uint64_t>(ref.micro_batch);
}

bool IsOfEmbedding(const Instr& instr) {
  const AttrValue* group = instr.attrs.Find("group");
  return group != nullptr && std::holds_alternative<std::string>(*group) &&
         std::get<std::string>(*group) == "embedding";
}

// The axes a collective runs over; all operands of one instruction are taken together.
AxisSet AxesOf(const Segment& segment, const Instr& instr) {
  AxisSet axes;
  for (size_t i = 0; i < instr.inputs.size() && i < instr.outputs.size(); ++i) {
    const absl::StatusOr<Collective> collective = CollectiveBetween(
        segment.slots[static_cast<size_t>(instr.inputs[i])].sharding,
        segment.slots[static_cast<size_t>(instr.outputs[i])].sharding, instr.op->name);
    if (collective.ok()) axes |= collective->axes.AsSet();
  }
  return axes;
}

// What members of a group must agree on, besides the group.
std::string FormOf(const Segment& segment, const Instr& instr, const Mesh& mesh) {
  std::string form = instr.op->name;
  for (size_t i = 0; i < instr.inputs.size() && i < instr.outputs.size(); ++i) {
    for (int number : {instr.inputs[i], instr.outputs[i]}) {
      const Slot& slot = segment.slots[static_cast<size_t>(number)];
      absl::StrAppend(&form, " ", NameOf(slot.type.dtype), "[",
                      LocalElements(slot.type, slot.sharding, mesh), "]");
      absl::StrAppend(&form, slot.sharding.max.empty() ? "" : "^");
    }
  }
  return form;
}

}  // namespace

// Fills WalkTables.
class WalkTablesBuilder {
 public:
  explicit WalkTablesBuilder(WalkTables* tables)
      : tables_(*tables), plan_(tables->plan), pipeline_(PipelineAxis(plan_.mesh)) {}

  void Run() {
    for (const Segment& segment : plan_.segments) AddSegment(segment);
    for (const PlanClass& plan_class : plan_.classes) AddClass(plan_class);
    const int num_classes = static_cast<int>(plan_.classes.size());
    for (int c = 0; c < num_classes; ++c) {
      for (WalkTransfer& transfer : tables_.classes[static_cast<size_t>(c)].transfers) {
        FindPeer(c, &transfer);
      }
    }
  }

 private:
  void AddSegment(const Segment& segment) {
    WalkSegment made;
    made.segment = &segment;
    for (const Instr& instr : segment.instrs) {
      if (instr.kind != InstrKind::kStart && instr.kind != InstrKind::kWait) continue;
      made.points.push_back(&instr);
      if (instr.kind == InstrKind::kStart) made.starts.push_back(StartOf(segment, instr));
    }
    tables_.segments.push_back(std::move(made));
  }

  WalkStart StartOf(const Segment& segment, const Instr& instr) {
    WalkStart start;
    start.instr = &instr;
    const bool embedding = IsOfEmbedding(instr);
    const AxisSet axes = embedding ? AxisSet{} : AxesOf(segment, instr);
    if (pipeline_ < 0 || (!embedding && !axes.Contains(pipeline_))) return start;
    const uint32_t key = axes.bits() | (embedding ? uint32_t{1} << 31 : 0);
    const auto [it, is_new] = group_numbers_.try_emplace(key, tables_.groups.size());
    start.group = static_cast<int>(it->second);
    if (is_new) AddGroup(axes, embedding);
    const std::string form = absl::StrCat(start.group, " ", FormOf(segment, instr, plan_.mesh));
    start.signature =
        static_cast<int>(signatures_.try_emplace(form, signatures_.size()).first->second);
    return start;
  }

  void AddGroup(AxisSet axes, bool embedding) {
    const int last = static_cast<int>(plan_.classes.size()) - 1;
    std::vector<int> members;
    for (int c = 0; c <= last; ++c) {
      if (!embedding || c == 0 || c == last) members.push_back(c);
    }
    tables_.groups.push_back(std::move(members));
    tables_.group_names.push_back(embedding ? "embedding" : plan_.mesh.GroupName(axes));
  }

  void AddClass(const PlanClass& plan_class) {
    WalkClass made;
    made.plan_class = &plan_class;
    made.chunks = tables_.eval ? &plan_class.eval_chunks : &plan_class.chunks;
    const Program& program = tables_.eval ? plan_class.eval : plan_class.train;
    for (size_t i = 0; i < program.transfers.size(); ++i) {
      made.transfer_index_[KeyOf(program.transfers[i].ref)] = static_cast<int>(i);
    }
    for (size_t i = 0; i < program.compute.size(); ++i) {
      made.action_index_[KeyOf(program.compute[i].ref)] = static_cast<int>(i);
    }
    int64_t after_reductions = 0;
    for (const Action& action : program.compute) {
      AddAction(action, &after_reductions, &made);
    }
    for (const Transfer& transfer : program.transfers) AddTransfer(transfer, &made);
    tables_.classes.push_back(std::move(made));
  }

  void AddAction(const Action& action, int64_t* after_reductions, WalkClass* made) const {
    WalkAction walk;
    walk.action = &action;
    walk.calls = CallsOf(action.ref, *made);
    walk.first_collective = made->num_collectives;
    for (const TransferRef& ref : action.waits) {
      walk.transfers_needed = std::max<int64_t>(walk.transfers_needed, made->IndexOf(ref) + 1);
    }
    if (action.waits_for_reductions) walk.collectives_needed = *after_reductions;
    for (const Call& call : *walk.calls) {
      made->num_collectives +=
          static_cast<int64_t>(tables_.segments[static_cast<size_t>(call.segment)].starts.size());
    }
    if (action.ref.kind == ActionKind::kReduceGrad) *after_reductions = made->num_collectives;
    made->actions.push_back(walk);
  }

  const std::vector<Call>* CallsOf(const ActionRef& ref, const WalkClass& made) const {
    if (ref.kind == ActionKind::kUpdate) {
      return tables_.eval ? &made.plan_class->eval_update : &made.plan_class->update;
    }
    const Chunk& chunk = (*made.chunks)[static_cast<size_t>(ref.chunk)];
    if (ref.kind == ActionKind::kForward) return &chunk.forward;
    return ref.kind == ActionKind::kBackward ? &chunk.backward : &chunk.reduce;
  }

  void AddTransfer(const Transfer& transfer, WalkClass* made) const {
    WalkTransfer walk;
    walk.transfer = &transfer;
    for (const ActionRef& ref : transfer.after) {
      walk.actions_needed = std::max<int64_t>(walk.actions_needed, made->IndexOf(ref) + 1);
    }
    if (IsSend(transfer.ref.kind)) {
      const ActionRef sender{
          IsForward(transfer.ref.kind) ? ActionKind::kForward : ActionKind::kBackward,
          transfer.ref.chunk, transfer.ref.micro_batch};
      walk.actions_needed = std::max<int64_t>(walk.actions_needed, made->IndexOf(sender) + 1);
    }
    // Transfers that it comes after stand before it in the list: plan_c6.
    const int anchor = made->IndexOf(transfer.anchor);
    walk.position = transfer.issued;
    if (anchor >= 0) walk.position += made->actions[static_cast<size_t>(anchor)].first_collective;
    made->transfers.push_back(walk);
  }

  // Every transfer has its other end: plan_c12.
  void FindPeer(int own, WalkTransfer* transfer) {
    const TransferRef& ref = transfer->transfer->ref;
    const bool send = IsSend(ref.kind);
    const bool forward = IsForward(ref.kind);
    const WalkClass& mine = tables_.classes[static_cast<size_t>(own)];
    const int stage =
        (*mine.chunks)[static_cast<size_t>(ref.chunk)].stage + (send == forward ? 1 : -1);
    const TransferKind other =
        forward ? (send ? TransferKind::kRecvForward : TransferKind::kSendForward)
                : (send ? TransferKind::kRecvBackward : TransferKind::kSendBackward);
    transfer->peer_class = transfer->transfer->peer;
    transfer->peer_index = tables_.classes[static_cast<size_t>(transfer->peer_class)].IndexOf(
        TransferRef{other, stage / static_cast<int>(plan_.classes.size()), ref.micro_batch});
  }

  WalkTables& tables_;
  const Plan& plan_;
  const AxisId pipeline_;
  absl::flat_hash_map<uint32_t, size_t> group_numbers_;
  absl::flat_hash_map<std::string, size_t> signatures_;
};

int WalkClass::IndexOf(const ActionRef& ref) const {
  const auto it = action_index_.find(KeyOf(ref));
  return it == action_index_.end() ? -1 : it->second;
}

int WalkClass::IndexOf(const TransferRef& ref) const {
  const auto it = transfer_index_.find(KeyOf(ref));
  return it == transfer_index_.end() ? -1 : it->second;
}

WalkTables::WalkTables(const Plan& checked, bool of_eval) : plan(checked), eval(of_eval) {
  WalkTablesBuilder(this).Run();
}

}  // namespace mgc
