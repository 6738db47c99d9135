#include "graph/plan/step_tables.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mgc {
namespace {

const Slot& SlotAt(const Segment& segment, int slot) {
  return segment.slots[static_cast<size_t>(slot)];
}

// What members of a group must agree on, besides the group.
std::string FormOf(const Segment& segment, const StepStart& start, const Mesh& mesh) {
  const Instr& instr = *start.instr;
  std::string form = instr.op->name;
  for (AxisId axis : start.collective.parts[0].axes) absl::StrAppend(&form, ".", axis);
  for (int c : start.collective.classes) absl::StrAppend(&form, " class ", c);
  for (size_t i = 0; i < instr.inputs.size(); ++i) {
    for (int number : {instr.inputs[i], instr.outputs[i]}) {
      const Slot& slot = SlotAt(segment, number);
      absl::StrAppend(&form, " ", NameOf(slot.type.dtype), "[",
                      absl::StrJoin(LocalShape(slot.type, slot.sharding, mesh), ","), "]");
      absl::StrAppend(&form, slot.sharding.max.empty() ? "" : "^");
    }
  }
  return form;
}

// Fills StepTables.
class Builder {
 public:
  explicit Builder(StepTables* tables)
      : tables_(*tables), plan_(tables->plan), pipeline_(PipelineAxis(plan_.mesh)) {}

  void Run() {
    for (const Segment& segment : plan_.segments) AddSegment(segment);
    for (const PlanClass& plan_class : plan_.classes) AddClass(plan_class);
    for (StepClass& step_class : tables_.classes) {
      for (StepTransfer& transfer : step_class.transfers) FindPeer(step_class, &transfer);
    }
  }

 private:
  void AddSegment(const Segment& segment) {
    StepSegment made;
    made.segment = &segment;
    const std::vector<bool> waited_for = WaitedFor(segment);
    for (const Instr& instr : segment.instrs) {
      if (instr.kind != InstrKind::kStart && instr.kind != InstrKind::kWait) continue;
      made.points.push_back(&instr);
      if (instr.kind != InstrKind::kStart) continue;
      made.starts.push_back(StartOf(segment, instr));
      made.starts.back().background = !waited_for[static_cast<size_t>(instr.collective)];
    }
    tables_.segments.push_back(std::move(made));
  }

  StepStart StartOf(const Segment& segment, const Instr& instr) {
    StepStart start;
    start.instr = &instr;
    start.collective = CollectiveOf(plan_.mesh, plan_.stages, segment, instr);
    if (pipeline_ >= 0 && start.collective.axes().Contains(pipeline_)) {
      start.group = GroupOf(start.collective);
    }
    const std::string form = FormOf(segment, start, plan_.mesh);
    start.signature =
        static_cast<int>(signatures_.try_emplace(form, signatures_.size()).first->second);
    return start;
  }

  int GroupOf(const InstrCollective& collective) {
    const std::pair<uint32_t, std::vector<int>> key = {collective.axes().bits(),
                                                       collective.classes};
    const auto [it, is_new] = group_numbers_.try_emplace(key, tables_.groups.size());
    if (!is_new) return static_cast<int>(it->second);
    std::vector<int> members = collective.classes;
    if (members.empty()) {
      members.resize(plan_.classes.size());
      std::iota(members.begin(), members.end(), 0);
    }
    tables_.groups.push_back(std::move(members));
    tables_.group_names.push_back(collective.group);
    return static_cast<int>(it->second);
  }

  void AddClass(const PlanClass& plan_class) {
    StepClass made;
    made.plan_class = &plan_class;
    made.chunks = tables_.eval ? &plan_class.eval_chunks : &plan_class.chunks;
    const Program& program = tables_.eval ? plan_class.eval : plan_class.train;
    for (size_t i = 0; i < program.transfers.size(); ++i) {
      made.index.Add(program.transfers[i].ref, static_cast<int>(i));
    }
    for (size_t i = 0; i < program.compute.size(); ++i) {
      made.index.Add(program.compute[i].ref, static_cast<int>(i));
    }
    background_.clear();
    for (const Action& action : program.compute) AddAction(action, &made);
    for (const Transfer& transfer : program.transfers) AddTransfer(transfer, &made);
    tables_.classes.push_back(std::move(made));
  }

  void AddAction(const Action& action, StepClass* made) {
    StepAction step;
    step.action = &action;
    step.calls = &CallsOf(plan_, *made->plan_class, tables_.eval, action.ref);
    step.first_collective = made->num_collectives;
    for (const TransferRef& ref : action.waits) {
      step.transfers_needed = std::max<int64_t>(step.transfers_needed, made->IndexOf(ref) + 1);
    }
    const bool waits = std::any_of(step.calls->begin(), step.calls->end(),
                                   [](const Call& call) { return call.running != kAnyRunning; });
    for (const Call& call : *step.calls) {
      if (waits) step.collectives_needed.push_back(NeededBy(call));
      for (const StepStart& start : tables_.segments[static_cast<size_t>(call.segment)].starts) {
        ++made->num_collectives;
        if (start.background) background_.push_back(made->num_collectives);
      }
    }
    made->actions.push_back(std::move(step));
  }

  int64_t NeededBy(const Call& call) const {
    const int64_t done = static_cast<int64_t>(background_.size()) - call.running;
    return call.running == kAnyRunning || done <= 0 ? 0
                                                    : background_[static_cast<size_t>(done) - 1];
  }

  static void AddTransfer(const Transfer& transfer, StepClass* made) {
    StepTransfer step;
    step.transfer = &transfer;
    for (const ActionRef& ref : transfer.after) {
      step.actions_needed = std::max<int64_t>(step.actions_needed, made->IndexOf(ref) + 1);
    }
    if (IsSend(transfer.ref.kind)) {
      const int sender = made->IndexOf(SenderOf(transfer.ref));
      step.actions_needed = std::max<int64_t>(step.actions_needed, sender + 1);
    }
    // Transfers that it comes after stand before it in the list: plan_c6.
    const int anchor = made->IndexOf(transfer.anchor);
    step.position = transfer.issued;
    if (anchor >= 0) step.position += made->actions[static_cast<size_t>(anchor)].first_collective;
    made->transfers.push_back(step);
  }

  // Every transfer has its other end: plan_c12.
  void FindPeer(const StepClass& own, StepTransfer* transfer) {
    const TransferRef& ref = transfer->transfer->ref;
    const int stage = OtherStage(ref.kind, (*own.chunks)[static_cast<size_t>(ref.chunk)].stage);
    transfer->peer_class = transfer->transfer->peer;
    transfer->peer_index =
        tables_.classes[static_cast<size_t>(transfer->peer_class)].IndexOf(TransferRef{
            OtherEnd(ref.kind), plan_.stages[static_cast<size_t>(stage)].chunk, ref.micro_batch});
  }

  StepTables& tables_;
  const Plan& plan_;
  const AxisId pipeline_;
  // Of a class: collectives of the step up to each of those in the background.
  std::vector<int64_t> background_;
  absl::flat_hash_map<std::pair<uint32_t, std::vector<int>>, size_t> group_numbers_;
  absl::flat_hash_map<std::string, size_t> signatures_;
};

}  // namespace

StepTables::StepTables(const Plan& checked, bool of_eval) : plan(checked), eval(of_eval) {
  Builder(this).Run();
}

}  // namespace mgc
