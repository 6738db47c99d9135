#include "graph/plan/step_walker.h"

#include <algorithm>
#include <utility>

namespace mgc {

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
         (state.comm_step == state.step && state.collectives_of_step >= of_step) || of_step <= 0;
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
    if (!TransfersDone(c, action.transfers_needed) || visitor_.HoldsAction(c, *action.action)) {
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
    if (!state.in_call && !BeginCall(c, action, call)) return false;
    const size_t size = wants_instrs_ ? segment.segment->instrs.size() : segment.points.size();
    for (; state.instr < size; ++state.instr) {
      const Instr& instr =
          wants_instrs_ ? segment.segment->instrs[state.instr] : *segment.points[state.instr];
      if (!RunInstr(c, action, call, instr)) return false;
    }
    state.call_first += static_cast<int64_t>(segment.starts.size());
    state.in_call = false;
  }
  return true;
}

// By the call that comes next.
int64_t StepWalker::NeededByCall(int c) const {
  const ClassState& state = classes_[static_cast<size_t>(c)];
  const std::vector<int64_t>& needed = ClassOf(c).actions[state.action].collectives_needed;
  return needed.empty() ? 0 : needed[state.call];
}

// False where the call must wait.
bool StepWalker::BeginCall(int c, const StepAction& action, const Call& call) {
  ClassState& state = classes_[static_cast<size_t>(c)];
  if (call.running != kAnyRunning) {
    if (!CollectivesDone(c, NeededByCall(c))) return false;
    visitor_.Await({c, state.step, action.action, &call, SegmentOf(call).segment, nullptr});
  }
  state.in_call = true;
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

}  // namespace mgc
