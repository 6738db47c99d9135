// The communication queues of StepSimulator.

#include <algorithm>
#include <utility>

#include "passes/plan/time/simulate_step.h"

namespace mgc {

// To a stage of the same class, whose input then lies where the output does. False: there is none.
bool StepSimulator::HandOver(int c, const OrderedAction& action, bool forward) {
  const absl::optional<ActionRef> next =
      NeighbourInPlace(spec_.stages, *classes_[c].chunks, action.ref, true);
  if (!next.has_value()) return false;
  ClassState& state = states_[c];
  (forward ? state.inputs : state.grad_inputs)[IndexOf(next->chunk, next->micro_batch)] =
      forward ? action.output : action.grad_output;
  return true;
}

void StepSimulator::AskForTransfer(int c, const OrderedAction& action, bool forward, int64_t now) {
  if (HandOver(c, action, forward)) return;
  const int stage = (*classes_[c].chunks)[action.ref.chunk].stage + (forward ? 1 : -1);
  PendingTransfer transfer;
  transfer.channel = ChannelFrom((*classes_[c].chunks)[action.ref.chunk].stage, forward);
  Channel& channel = channels_[transfer.channel];
  ++channel.outboxes;
  transfer.ns = channel.ns;
  transfer.src = c;
  transfer.dst = spec_.stages[stage].rank_class;
  const int chunk = spec_.stages[stage].chunk;
  transfer.send = {forward ? TransferKind::kSendForward : TransferKind::kSendBackward,
                   action.ref.chunk, action.ref.micro_batch};
  transfer.recv = {forward ? TransferKind::kRecvForward : TransferKind::kRecvBackward, chunk,
                   action.ref.micro_batch};
  transfer.ready = now;
  const ClassState& to = states_[transfer.dst];
  transfer.consumer =
      (forward ? to.forwards : to.backwards)[IndexOf(chunk, action.ref.micro_batch)];
  transfer.src_slot = forward ? action.output : action.grad_output;
  if (free_transfers_.empty()) {
    free_transfers_.push_back(static_cast<int>(transfers_.size()));
    transfers_.emplace_back();
  }
  const int id = free_transfers_.back();
  free_transfers_.pop_back();
  transfers_[id] = transfer;
  if (channel.pending.empty()) SetAsked(channel, true);
  channel.pending.push_back(id);
  ++states_[c].pending_transfers;
  ++states_[transfer.dst].pending_transfers;
}

void StepSimulator::SetAsked(const Channel& channel, bool asked) {
  const auto set = [asked](std::vector<int>* places, int place) {
    const auto at = std::lower_bound(places->begin(), places->end(), place);
    asked ? places->insert(at, place) : places->erase(at);
  };
  set(&states_[channel.src].asked, channel.src_place);
  set(&states_[channel.dst].asked, channel.dst_place);
}

bool StepSimulator::IsAsked(const ClassState& state) const {
  return std::any_of(state.asked.begin(), state.asked.end(), [&](int place) {
    return IsAwaited(transfers_[channels_[state.channels[place]].pending.front()]);
  });
}

bool StepSimulator::MayStart(const PendingTransfer& transfer, int64_t now) {
  const auto are_free = [&] {
    return states_[transfer.src].queue_free <= now && states_[transfer.dst].queue_free <= now;
  };
  if (!IsAwaited(transfer) || !are_free()) return false;
  Interrupt(transfer.src, now);
  Interrupt(transfer.dst, now);
  return are_free();
}

// Whether the collective that has waited longest goes now, before transfer `best`, -1: none can.
// The update's may span stages: they come after every transfer of the class. One in the background
// lets transfers pass, and those that will be asked for before it ends; unless the class needs it,
// or what stands behind it, before them.
bool StepSimulator::GoesBefore(int c, int best, int64_t now) {
  const ClassState& state = states_[c];
  const PendingCollective& next = state.collectives.front();
  if (next.update && state.pending_transfers > 0) return false;
  if (!next.background) return best < 0 || next.ready < transfers_[best].ready;
  if (best >= 0) return false;
  const OrderedProgram& program = *classes_[c].program;
  const bool ended = state.action == static_cast<int>(program.compute.size());
  if (ended || !state.collectives.back().background) return true;
  const int64_t needed = NeededOn(c, now);
  return std::none_of(state.sources.begin(), state.sources.end(), [&](int src) {
    const int64_t due = DueFrom(src, c, now);
    return due < needed && due < now + next.ns;
  });
}

// When the action that a class computes next waits for the background, or asks for a collective of
// its own, if nothing keeps it waiting; kMaxNs where it does neither.
int64_t StepSimulator::NeededOn(int c, int64_t now) const {
  const ClassState& state = states_[c];
  if (state.step < 0) return kMaxNs;
  const std::vector<TimedStep>& steps = StepsOf(c, classes_[c].program->compute[state.action].ref);
  int64_t needed = state.running ? state.run_end : now;
  for (size_t i = static_cast<size_t>(state.step); i < steps.size(); ++i) {
    const TimedStep& step = steps[i];
    if (step.kind == TimedStep::kAwait) return needed;
    if (step.kind == TimedStep::kStart && !step.background) return needed;
    if (step.kind == TimedStep::kRun) needed = Later(needed, step.ns);
  }
  return kMaxNs;
}

// When the action that `src` computes will ask for a transfer from it that class `c` takes part in,
// if nothing keeps it waiting; kMaxNs where it will not.
int64_t StepSimulator::DueFrom(int src, int c, int64_t now) {
  Interrupt(src, now);
  const ClassState& state = states_[src];
  const OrderedProgram& program = *classes_[src].program;
  if (state.step < 0 || state.action == static_cast<int>(program.compute.size())) return kMaxNs;
  const ActionRef& ref = program.compute[state.action].ref;
  if (!IsOfMicroBatch(ref.kind)) return kMaxNs;
  const int stage = (*classes_[src].chunks)[ref.chunk].stage;
  const Channel& channel = channels_[ChannelFrom(stage, ref.kind == ActionKind::kForward)];
  const bool moves = channel.src != channel.dst;
  if (!moves || (channel.src != c && channel.dst != c)) return kMaxNs;
  const std::vector<TimedStep>& steps = StepsOf(src, ref);
  int64_t due = state.running ? state.run_end : now;
  for (size_t i = static_cast<size_t>(state.step); i < steps.size(); ++i) {
    if (steps[i].kind == TimedStep::kRun) due = Later(due, steps[i].ns);
  }
  return due;
}

// Starts what a class' communication queue can run now: the request that has waited longest.
void StepSimulator::TryStart(int c, int64_t now) {
  ClassState& state = states_[c];
  if (state.queue_free > now || state.quiet.has_value()) return;
  int best = -1;
  for (int place = 0;; ++place) {  // an interrupted class may ask for more
    const auto next = std::lower_bound(state.asked.begin(), state.asked.end(), place);
    if (next == state.asked.end()) break;
    place = *next;
    const int t = channels_[state.channels[place]].pending.front();
    if (MayStart(transfers_[t], now) &&
        (best < 0 || transfers_[t].ready < transfers_[best].ready)) {
      best = t;
    }
  }
  if (!state.collectives.empty() && GoesBefore(c, best, now)) {
    const PendingCollective next = state.collectives.front();
    state.collectives.pop_front();
    state.queue_free = now + next.ns;
    PlaceCollective(c, next.action, next.ns);
    if (next.background) state.background_axes = next.axes;
    if (keep_spans_) Span(c, true, "collective", now, now + next.ns);
    const auto kind = next.background ? Event::kBackgroundDone : Event::kCollectiveDone;
    Push(now + next.ns, kind, c, next.index, next.action);
  } else if (best >= 0) {
    StartTransfer(best, now);
  }
}

void StepSimulator::PlaceCollective(int c, int action, int64_t ns) {
  ClassState& state = states_[c];
  int64_t& all_ns = result_.collectives[static_cast<size_t>(c)].all_ns;
  all_ns = Later(all_ns, ns);
  state.placed = action == state.placed_action ? state.placed + 1 : 1;
  state.placed_action = action;
}

void StepSimulator::StartTransfer(int t, int64_t now) {
  PendingTransfer& transfer = transfers_[t];
  PoolSlot previous;
  transfer.dst_slot = TakeSlot(transfer.dst, &previous);
  transfer.began = now;
  Channel& channel = channels_[transfer.channel];
  channel.pending.pop_front();
  if (channel.pending.empty()) SetAsked(channel, false);
  for (int c : {transfer.src, transfer.dst}) {
    --states_[c].pending_transfers;
    states_[c].queue_free = now + transfer.ns;
  }
  if (spec_.lists_transfers) {
    RecordTransfer(transfer.src, transfer, true);
    RecordTransfer(transfer.dst, transfer, false);
    OrderedTransfer& recv = classes_[transfer.dst].program->transfers.back();
    if (previous.has_action) recv.after.push_back(previous.action);
    if (previous.has_transfer) recv.after_transfers.push_back(previous.transfer);
  }
  if (keep_spans_) {
    Span(transfer.src, true, NameOf(transfer.send, *classes_[transfer.src].chunks), now,
         now + transfer.ns);
    Span(transfer.dst, true, NameOf(transfer.recv, *classes_[transfer.dst].chunks), now,
         now + transfer.ns);
  }
  Push(now + transfer.ns, Event::kTransferDone, transfer.src, t, 0);
}

// Anchored at the action that is being computed where all collectives before it are placed, so that
// anchors move along with a repeated pattern; else behind the last collective placed.
void StepSimulator::RecordTransfer(int c, const PendingTransfer& pending, bool send) {
  const ClassState& state = states_[c];
  OrderedProgram& program = *classes_[c].program;
  OrderedTransfer transfer;
  transfer.ref = send ? pending.send : pending.recv;
  transfer.slot = send ? pending.src_slot : pending.dst_slot;
  transfer.bytes = channels_[pending.channel].bytes;
  transfer.peer = send ? pending.dst : pending.src;
  int anchor = state.placed_action;
  transfer.issued = state.placed;
  const int last = static_cast<int>(program.compute.size()) - 1;
  const int current = std::min(state.action, last);
  if (state.collectives.empty() || state.collectives.front().action == current) {
    anchor = current;
    transfer.issued = state.placed_action == current ? state.placed : 0;
  }
  transfer.anchor = program.compute[anchor].ref;
  program.transfers.push_back(std::move(transfer));
}

int64_t StepSimulator::TakeSlot(int c, PoolSlot* last) {
  ClassState& state = states_[c];
  if (state.free_slots.empty()) {
    state.free_slots.push(static_cast<int64_t>(state.pool.size()));
    state.pool.emplace_back();
  }
  const int64_t slot = state.free_slots.top();
  state.free_slots.pop();
  *last = state.pool[slot];
  return slot;
}

}  // namespace mgc
