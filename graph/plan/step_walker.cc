#include "graph/plan/step_walker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mgc {
namespace {

constexpr size_t kMostNeeds = 64;  // that a stopped queue names

}  // namespace

StepWalker::StepWalker(const StepTables& tables, int steps, StepVisitor* visitor)
    : tables_(tables),
      steps_(steps),
      visitor_(*visitor),
      wants_instrs_(visitor->WantsInstrs()),
      classes_(tables.classes.size()),
      is_awake_(tables.classes.size(), false) {}

bool StepWalker::Run() {
  const int num_classes = static_cast<int>(classes_.size());
  if (steps_ <= 0) return true;
  for (int c = 0; c < num_classes; ++c) {
    visitor_.BeginStep(c, 0);
    FindNextStart(c);
    PassStepEnd(c);
    Wake(c);
  }
  RunAwake();
  while (!AllAtEnd() && visitor_.LetGo()) {
    for (int c = 0; c < num_classes; ++c) Wake(c);
    RunAwake();
  }
  return AllAtEnd();
}

// Runs classes until none of those awake can move.
void StepWalker::RunAwake() {
  while (!awake_.empty()) {
    const int c = awake_.front();
    awake_.pop_front();
    is_awake_[static_cast<size_t>(c)] = false;
    bool moved = true;
    while (moved) {
      moved = Compute(c);
      moved |= Communicate(c);
    }
  }
}

bool StepWalker::AllAtEnd() const {
  for (int c = 0; c < static_cast<int>(classes_.size()); ++c) {
    if (!ComputeAtEnd(c) || !CommAtEnd(c)) return false;
  }
  return true;
}

void StepWalker::Wake(int c) {
  if (is_awake_[static_cast<size_t>(c)]) return;
  is_awake_[static_cast<size_t>(c)] = true;
  awake_.push_back(c);
}

bool StepWalker::ComputeAtEnd(int c) const {
  return classes_[static_cast<size_t>(c)].step == steps_;
}
bool StepWalker::CommAtEnd(int c) const {
  return classes_[static_cast<size_t>(c)].comm_step == steps_;
}
bool StepWalker::IsAtEnd(const WalkQueue& queue) const {
  return queue.communication ? CommAtEnd(queue.class_index) : ComputeAtEnd(queue.class_index);
}

bool StepWalker::CollectivesDone(int c, int64_t of_step) const {
  const ClassState& state = classes_[static_cast<size_t>(c)];
  return state.comm_step > state.step ||
         (state.comm_step == state.step && state.collectives_of_step >= of_step) || of_step == 0;
}
bool StepWalker::TransfersDone(int c, int64_t of_step) const {
  const ClassState& state = classes_[static_cast<size_t>(c)];
  return state.comm_step > state.step ||
         (state.comm_step == state.step &&
          static_cast<int64_t>(state.transfers_of_step) >= of_step) ||
         of_step == 0;
}

// Runs the compute queue until it stops; whether it has moved.
bool StepWalker::Compute(int c) {
  ClassState& state = classes_[static_cast<size_t>(c)];
  const StepClass& walk = ClassOf(c);
  const int64_t started = state.started;
  const int64_t done = state.actions_done;
  while (!ComputeAtEnd(c)) {
    if (state.action < walk.actions.size()) {
      if (!ComputeAction(c)) break;
      const StepAction& action = walk.actions[state.action];
      visitor_.EndAction(c, *action.action);
      ++state.actions_done;
      ++state.action;
      state.inside = false;
      continue;
    }
    ++state.step;
    state.action = 0;
    if (state.step < steps_) visitor_.BeginStep(c, state.step);
  }
  // Others may wait for what this queue has started or ended.
  if (state.started == started && state.actions_done == done) return false;
  return true;
}

// False where the queue stops inside.
bool StepWalker::ComputeAction(int c) {
  ClassState& state = classes_[static_cast<size_t>(c)];
  const StepAction& action = ClassOf(c).actions[state.action];
  if (!state.inside) {
    if (!TransfersDone(c, action.transfers_needed) ||
        !CollectivesDone(c, action.collectives_needed) || visitor_.HoldsAction(c, *action.action)) {
      return false;
    }
    visitor_.BeginAction(c, *action.action);
    state.inside = true;
    state.call = state.instr = 0;
    state.call_first = action.first_collective;
  }
  for (; state.call < action.calls->size(); ++state.call, state.instr = 0) {
    const Call& call = (*action.calls)[state.call];
    const StepSegment& segment = SegmentOf(call);
    const size_t size = wants_instrs_ ? segment.segment->instrs.size() : segment.points.size();
    for (; state.instr < size; ++state.instr) {
      const Instr& instr =
          wants_instrs_ ? segment.segment->instrs[state.instr] : *segment.points[state.instr];
      if (!RunInstr(c, action, call, instr)) return false;
    }
    state.call_first += static_cast<int64_t>(segment.starts.size());
  }
  return true;
}

bool StepWalker::RunInstr(int c, const StepAction& action, const Call& call, const Instr& instr) {
  ClassState& state = classes_[static_cast<size_t>(c)];
  const InstrSite site{c, state.step, action.action, &call, SegmentOf(call).segment, &instr};
  if (instr.kind == InstrKind::kWait) {
    if (!CollectivesDone(c, state.call_first + instr.collective + 1)) return false;
    visitor_.Wait(site);
  } else if (instr.kind == InstrKind::kStart) {
    ++state.started;
    visitor_.Start(site);
  } else {
    visitor_.Run(site);
  }
  return true;
}

// Runs the communication queue until it stops; whether it has moved.
bool StepWalker::Communicate(int c) {
  bool moved = false;
  while (!CommAtEnd(c) && (HeadIsTransfer(c) ? RunTransfer(c) : RunCollective(c))) moved = true;
  return moved;
}

bool StepWalker::HeadIsTransfer(int c) const {
  const ClassState& state = classes_[static_cast<size_t>(c)];
  const StepClass& walk = ClassOf(c);
  if (CommAtEnd(c) || state.transfers_of_step >= walk.transfers.size()) return false;
  return state.collectives_of_step >=
         std::min(walk.transfers[state.transfers_of_step].position, walk.num_collectives);
}

const StepStart* StepWalker::HeadStart(int c) const {
  if (CommAtEnd(c) || HeadIsTransfer(c)) return nullptr;
  const ClassState& state = classes_[static_cast<size_t>(c)];
  const Call& call = (*ClassOf(c).actions[state.at_action].calls)[state.at_call];
  return &SegmentOf(call).starts[state.at_start];
}

bool StepWalker::HasStarted(int c) const {
  const ClassState& state = classes_[static_cast<size_t>(c)];
  return state.started > state.comm_step * ClassOf(c).num_collectives + state.collectives_of_step;
}

// Whether this end's queue stands at the transfer and everything it comes after is done.
bool StepWalker::TransferCanRun(int c, const StepTransfer& transfer) const {
  const ClassState& state = classes_[static_cast<size_t>(c)];
  const StepClass& walk = ClassOf(c);
  if (!HeadIsTransfer(c) || &walk.transfers[state.transfers_of_step] != &transfer) return false;
  // Transfers before it in the queue are done.
  const int64_t before = state.comm_step * static_cast<int64_t>(walk.actions.size());
  return transfer.actions_needed == 0 || state.actions_done >= before + transfer.actions_needed;
}

bool StepWalker::RunTransfer(int c) {
  ClassState& state = classes_[static_cast<size_t>(c)];
  const StepTransfer& mine = ClassOf(c).transfers[state.transfers_of_step];
  if (mine.peer_index < 0 || !TransferCanRun(c, mine)) return false;
  const int peer = mine.peer_class;
  const StepTransfer& other = ClassOf(peer).transfers[static_cast<size_t>(mine.peer_index)];
  ClassState& peer_state = classes_[static_cast<size_t>(peer)];
  if (!TransferCanRun(peer, other) || peer_state.comm_step != state.comm_step) return false;
  const bool sends = IsSend(mine.transfer->ref.kind);
  if (visitor_.HoldsTransfer(sends ? peer : c, sends ? *other.transfer : *mine.transfer)) {
    return false;
  }
  if (sends) {
    visitor_.Transfer(c, *mine.transfer, peer, *other.transfer);
  } else {
    visitor_.Transfer(peer, *other.transfer, c, *mine.transfer);
  }
  ++state.transfers_of_step;
  ++peer_state.transfers_of_step;
  PassStepEnd(c);
  PassStepEnd(peer);
  Wake(peer);
  return true;
}

bool StepWalker::RunCollective(int c) {
  const StepStart& start = *HeadStart(c);
  if (start.group == kOwnGroup) {
    if (!HasStarted(c)) return false;
    sites_.assign(1, HeadSite(c));
    visitor_.Collective(sites_);
    PassCollective(c);
    return true;
  }
  const std::vector<int>& members = tables_.groups[static_cast<size_t>(start.group)];
  if (std::find(members.begin(), members.end(), c) == members.end()) return false;
  sites_.clear();
  for (int member : members) {
    const StepStart* other = HeadStart(member);
    if (other == nullptr || other->signature != start.signature || !HasStarted(member) ||
        classes_[static_cast<size_t>(member)].comm_step !=
            classes_[static_cast<size_t>(c)].comm_step) {
      return false;
    }
    sites_.push_back(HeadSite(member));
  }
  visitor_.Collective(sites_);
  for (int member : members) {
    PassCollective(member);
    if (member != c) Wake(member);
  }
  return true;
}

InstrSite StepWalker::HeadSite(int c) const {
  const ClassState& state = classes_[static_cast<size_t>(c)];
  const StepAction& action = ClassOf(c).actions[state.at_action];
  const Call& call = (*action.calls)[state.at_call];
  const StepSegment& segment = SegmentOf(call);
  return {c,     state.comm_step, action.action,
          &call, segment.segment, segment.starts[state.at_start].instr};
}

// Moves on to the next collective of the step, or to the end of the lists.
void StepWalker::FindNextStart(int c) {
  ClassState& state = classes_[static_cast<size_t>(c)];
  const std::vector<StepAction>& actions = ClassOf(c).actions;
  for (; state.at_action < actions.size(); ++state.at_action, state.at_call = 0) {
    const std::vector<Call>& calls = *actions[state.at_action].calls;
    for (; state.at_call < calls.size(); ++state.at_call, state.at_start = 0) {
      if (state.at_start < SegmentOf(calls[state.at_call]).starts.size()) return;
    }
  }
}

void StepWalker::PassCollective(int c) {
  ClassState& state = classes_[static_cast<size_t>(c)];
  ++state.collectives_of_step;
  ++state.at_start;
  FindNextStart(c);
  PassStepEnd(c);
}

void StepWalker::PassStepEnd(int c) {
  ClassState& state = classes_[static_cast<size_t>(c)];
  const StepClass& walk = ClassOf(c);
  while (!CommAtEnd(c) && state.collectives_of_step == walk.num_collectives &&
         state.transfers_of_step == walk.transfers.size()) {
    ++state.comm_step;
    state.collectives_of_step = 0;
    state.transfers_of_step = 0;
    state.at_action = state.at_call = state.at_start = 0;
    FindNextStart(c);
  }
}

std::string StepWalker::NameOfSite(const InstrSite& site) const {
  const std::vector<Chunk>& chunks = *ClassOf(site.class_index).chunks;
  return absl::StrCat(site.instr->op->name, " ", site.instr->collective, " of ", site.segment->name,
                      site.call->layer >= 0 ? absl::StrCat(" layer ", site.call->layer) : "",
                      " in ", NameOf(site.action->ref, chunks));
}

// Of the collective with this number in the step.
std::string StepWalker::NameOfCollective(int c, int64_t of_step) const {
  const StepClass& walk = ClassOf(c);
  for (size_t a = walk.actions.size(); a-- > 0;) {
    int64_t first = walk.actions[a].first_collective;
    if (first > of_step) continue;
    for (const Call& call : *walk.actions[a].calls) {
      const StepSegment& segment = SegmentOf(call);
      const int64_t at = of_step - first;
      if (at < static_cast<int64_t>(segment.starts.size())) {
        return NameOfSite({c, 0, walk.actions[a].action, &call, segment.segment,
                           segment.starts[static_cast<size_t>(at)].instr});
      }
      first += static_cast<int64_t>(segment.starts.size());
    }
  }
  return "a collective that is not listed";
}

std::string StepWalker::Head(const WalkQueue& queue) const {
  const ClassState& state = classes_[static_cast<size_t>(queue.class_index)];
  const StepClass& walk = ClassOf(queue.class_index);
  if (queue.communication) {
    if (!HeadIsTransfer(queue.class_index)) return NameOfSite(HeadSite(queue.class_index));
    return NameOf(walk.transfers[state.transfers_of_step].transfer->ref, *walk.chunks);
  }
  const StepAction& action = walk.actions[state.action];
  std::string name = NameOf(action.action->ref, *walk.chunks);
  if (!state.inside) return name;
  const Call& call = (*action.calls)[state.call];
  return absl::StrCat(name, " in ", SegmentOf(call).segment->name,
                      call.layer >= 0 ? absl::StrCat(" layer ", call.layer) : "");
}

std::vector<WalkNeed> StepWalker::Needs(const WalkQueue& queue) const {
  std::vector<WalkNeed> needs;
  const int c = queue.class_index;
  if (IsAtEnd(queue)) return needs;
  if (queue.communication) {
    if (HeadIsTransfer(c)) {
      AddTransferNeeds(c, &needs);
    } else {
      AddCollectiveNeeds(c, &needs);
    }
    return needs;
  }
  const ClassState& state = classes_[static_cast<size_t>(c)];
  const StepClass& walk = ClassOf(c);
  const StepAction& action = walk.actions[state.action];
  const WalkQueue own{c, true};
  if (state.inside) {
    const StepSegment& segment = SegmentOf((*action.calls)[state.call]);
    const Instr& instr =
        wants_instrs_ ? segment.segment->instrs[state.instr] : *segment.points[state.instr];
    needs.push_back({own, NameOfCollective(c, state.call_first + instr.collective)});
    return needs;
  }
  for (const TransferRef& ref : action.action->waits) {
    if (TransfersDone(c, walk.IndexOf(ref) + 1)) continue;
    needs.push_back({own, NameOf(ref, *walk.chunks)});
  }
  if (!CollectivesDone(c, action.collectives_needed)) {
    needs.push_back({own, NameOfCollective(c, action.collectives_needed - 1)});
  }
  return needs;
}

void StepWalker::AddTransferNeeds(int c, std::vector<WalkNeed>* needs) const {
  const StepTransfer& mine =
      ClassOf(c).transfers[classes_[static_cast<size_t>(c)].transfers_of_step];
  const int peer = mine.peer_class;
  const bool has_peer = mine.peer_index >= 0;
  const StepTransfer* other =
      has_peer ? &ClassOf(peer).transfers[static_cast<size_t>(mine.peer_index)] : nullptr;
  for (const auto& [end, transfer] : {std::make_pair(c, &mine), std::make_pair(peer, other)}) {
    if (transfer == nullptr || TransferCanRun(end, *transfer)) continue;
    const ClassState& state = classes_[static_cast<size_t>(end)];
    const StepClass& walk = ClassOf(end);
    const bool at_head =
        HeadIsTransfer(end) && &walk.transfers[state.transfers_of_step] == transfer;
    if (!at_head) {
      needs->push_back({{end, true}, NameOf(transfer->transfer->ref, *walk.chunks)});
      continue;
    }
    const StepAction& last = walk.actions[static_cast<size_t>(transfer->actions_needed - 1)];
    needs->push_back({{end, false}, NameOf(last.action->ref, *walk.chunks)});
  }
}

void StepWalker::AddCollectiveNeeds(int c, std::vector<WalkNeed>* needs) const {
  const StepStart& start = *HeadStart(c);
  const std::string name = NameOfSite(HeadSite(c));
  if (!HasStarted(c)) needs->push_back({{c, false}, name});
  if (start.group == kOwnGroup) return;
  for (int member : tables_.groups[static_cast<size_t>(start.group)]) {
    if (member == c || needs->size() >= kMostNeeds) continue;
    const StepStart* other = HeadStart(member);
    const bool same_step = classes_[static_cast<size_t>(member)].comm_step ==
                           classes_[static_cast<size_t>(c)].comm_step;
    if (other == nullptr || other->signature != start.signature || !same_step) {
      needs->push_back({{member, true},
                        absl::StrCat("its ", start.instr->op->name, " over ",
                                     tables_.group_names[static_cast<size_t>(start.group)])});
    } else if (!HasStarted(member)) {
      needs->push_back({{member, false}, NameOfSite(HeadSite(member))});
    }
  }
}

}  // namespace mgc
