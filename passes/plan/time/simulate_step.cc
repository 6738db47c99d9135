#include "passes/plan/time/simulate_step.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

// Outboxes of a stage towards one neighbour: one is written while the other crosses.
constexpr int kMaxOutboxes = 2;

// All calls' steps in one list, collectives numbered over the whole action.
std::vector<TimedStep> Concatenate(const std::vector<StagedCall>& calls,
                                   const std::vector<std::vector<TimedStep>>& segments) {
  std::vector<TimedStep> steps;
  int base = 0;
  for (const StagedCall& call : calls) {
    int count = 0;
    for (TimedStep step : segments[call.segment]) {
      if (step.kind == TimedStep::kStart) ++count;
      step.collective += base;
      steps.push_back(step);
    }
    base += count;
  }
  return steps;
}

}  // namespace

StepSimulator::StepSimulator(const SimulationSpec& spec, std::vector<SimulatedClass> classes,
                             bool keep_spans)
    : spec_(spec),
      classes_(std::move(classes)),
      num_stages_(static_cast<int>(spec.stages.size())),
      keep_spans_(keep_spans),
      ranks_(classes_.size()),
      position_(classes_.size()) {
  for (size_t r = 0; r < ranks_.size(); ++r) PrepareRank(static_cast<int>(r));
  PrepareChannels();
}

void StepSimulator::PrepareChannels() {
  channels_.resize(2 * static_cast<size_t>(num_stages_));
  for (int s = 0; s < num_stages_; ++s) {
    for (const bool forward : {true, false}) {
      const int to = forward ? s + 1 : s - 1;
      if (to < 0 || to >= num_stages_) continue;
      const int src = spec_.stages[s].rank_class;
      const int dst = spec_.stages[to].rank_class;
      if (src == dst) continue;  // handed over in place
      const int id = ChannelFrom(s, forward);
      channels_[id].src = src;
      channels_[id].dst = dst;
      channels_[id].ns = TransferNs(spec_.costs, src, dst, spec_.stream_bytes);
      ranks_[src].channels.push_back(id);
      ranks_[dst].channels.push_back(id);
    }
  }
}

void StepSimulator::PrepareRank(int r) {
  const SimulatedClass& c = classes_[r];
  Rank& rank = ranks_[r];
  std::vector<std::vector<TimedStep>> segments(spec_.segments.size());
  const auto prepare = [&](const std::vector<StagedCall>& calls) {
    for (const StagedCall& call : calls) {
      std::vector<TimedStep>& steps = segments[call.segment];
      if (steps.empty()) steps = TimeSegment(spec_.costs, spec_.segments[call.segment], r);
    }
    rank.steps.push_back(Concatenate(calls, segments));
  };
  for (const StagedChunk& chunk : *c.chunks) {
    prepare(chunk.forward);
    prepare(chunk.backward);
    prepare(chunk.reduce);
  }
  prepare(*c.update);
  const size_t micro_batches = static_cast<size_t>(spec_.micro_batches);
  rank.inputs.assign(c.chunks->size(), std::vector<int64_t>(micro_batches, -1));
  rank.grad_inputs = rank.inputs;
  position_[r].assign(
      2, std::vector<std::vector<int>>(c.chunks->size(), std::vector<int>(micro_batches, -1)));
  for (size_t i = 0; i < c.program->compute.size(); ++i) {
    const ActionRef& ref = c.program->compute[i].ref;
    if (ref.kind > ActionKind::kBackward) continue;
    position_[r][static_cast<int>(ref.kind)][ref.chunk][ref.micro_batch] = static_cast<int>(i);
  }
}

const std::vector<TimedStep>& StepSimulator::StepsOf(const Rank& rank, const ActionRef& ref) const {
  if (ref.kind == ActionKind::kUpdate) return rank.steps.back();
  return rank.steps[static_cast<size_t>(ref.chunk) * 3 + static_cast<size_t>(ref.kind)];
}

void StepSimulator::Push(int64_t time, Event::Kind kind, int rank, int index, int action) {
  events_.push({time, sequence_++, kind, rank, index, action});
}

void StepSimulator::Span(int r, bool communication, std::string name, int64_t begin, int64_t end) {
  result_.spans.push_back({r, communication, std::move(name), begin, end});
}

absl::StatusOr<SimulatedStep> StepSimulator::Run() {
  result_.busy_ns.assign(ranks_.size(), 0);
  for (size_t r = 0; r < ranks_.size(); ++r) Push(0, Event::kCompute, static_cast<int>(r), 0, 0);
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    if (event.time >= kMaxNs) return StepOfCenturies(spec_.costs.machine);
    result_.makespan_ns = event.time;
    Rank& rank = ranks_[event.rank];
    if (event.kind == Event::kCompute) rank.running = false;
    if (event.kind == Event::kCollectiveDone) {
      --rank.outstanding;
      if (event.action == rank.action && rank.step >= 0) rank.done[event.index] = true;
    }
    if (event.kind == Event::kTransferDone) FinishTransfer(transfers_[event.index], event.time);
    Advance(event.rank, event.time);
    TryStart(event.rank, event.time);
  }
  for (size_t r = 0; r < ranks_.size(); ++r) {
    const OrderedProgram& program = *classes_[r].program;
    if (ranks_[r].action == static_cast<int>(program.compute.size())) continue;
    const ActionRef& ref = program.compute[ranks_[r].action].ref;
    return absl::FailedPreconditionError(
        absl::StrCat("the schedule waits for itself: pipeline rank ", r, " never runs ",
                     NameOf(ref, *classes_[r].chunks), " [order_c1]"));
  }
  for (size_t r = 0; r < ranks_.size(); ++r) result_.busy_ns[r] = ranks_[r].busy;
  return std::move(result_);
}

// The receiver has its input, the sender its slot back.
void StepSimulator::FinishTransfer(PendingTransfer t, int64_t now) {
  auto& inputs =
      t.recv.kind == TransferKind::kRecvForward ? ranks_[t.dst].inputs : ranks_[t.dst].grad_inputs;
  inputs[t.recv.chunk][t.recv.micro_batch] = t.dst_slot;
  --channels_[t.channel].outboxes;
  ranks_[t.src].free_slots.insert(t.src_slot);
  ranks_[t.src].pool[t.src_slot] = {false, true, {}, t.send};
  Advance(t.dst, now);
  TryStart(t.dst, now);
}

// Runs a class' compute queue until it has to wait.
void StepSimulator::Advance(int r, int64_t now) {
  Rank& rank = ranks_[r];
  const OrderedProgram& program = *classes_[r].program;
  while (!rank.running && rank.action < static_cast<int>(program.compute.size())) {
    if (rank.step < 0 && !BeginAction(r, now)) return;
    const std::vector<TimedStep>& steps = StepsOf(rank, program.compute[rank.action].ref);
    if (rank.step == static_cast<int>(steps.size())) {
      EndAction(r, now);
      continue;
    }
    const TimedStep& step = steps[rank.step];
    if (step.kind == TimedStep::kWait && !rank.done[step.collective]) return;
    ++rank.step;
    if (step.kind == TimedStep::kStart) {
      const bool update = program.compute[rank.action].ref.kind == ActionKind::kUpdate;
      rank.collectives.push_back({rank.action, step.collective, now, step.ns, update});
      ++rank.outstanding;
      TryStart(r, now);
    } else if (step.kind == TimedStep::kRun) {
      rank.running = true;
      rank.busy += step.ns;
      Push(now + step.ns, Event::kCompute, r, 0, 0);
    }
  }
}

// Without this a stage ahead of a slower one would fill outboxes in number with the micro-batches.
// Of several chunks a rank's later ones hold its first back; waiting here would only cost time.
bool StepSimulator::IsBackedUp(int stage, bool forward) const {
  const bool one_chunk_each = num_stages_ == static_cast<int>(ranks_.size());
  return one_chunk_each && channels_[ChannelFrom(stage, forward)].outboxes >= kMaxOutboxes;
}

bool StepSimulator::BeginAction(int r, int64_t now) {
  Rank& rank = ranks_[r];
  OrderedAction& action = classes_[r].program->compute[rank.action];
  const ActionRef& ref = action.ref;
  if (ref.kind == ActionKind::kUpdate) {
    if (rank.outstanding > 0) return false;
  } else if (ref.kind != ActionKind::kReduceGrad) {
    const StagedChunk& chunk = (*classes_[r].chunks)[ref.chunk];
    const bool forward = ref.kind == ActionKind::kForward;
    const bool first = chunk.stage == 0;
    const bool last = chunk.stage == num_stages_ - 1;
    const int64_t input = rank.inputs[ref.chunk][ref.micro_batch];
    const int64_t grad = rank.grad_inputs[ref.chunk][ref.micro_batch];
    if (forward ? !first && input < 0 : !last && grad < 0) return false;
    if (IsBackedUp(chunk.stage, forward)) return false;
    action.input = input;
    const bool received =
        !NeighbourInPlace(spec_.stages, *classes_[r].chunks, ref, false).has_value();
    if (forward && !first && received) {
      action.waits.push_back({TransferKind::kRecvForward, ref.chunk, ref.micro_batch});
    }
    if (!forward && !last) {
      action.grad_input = grad;
      if (received) {
        action.waits.push_back({TransferKind::kRecvBackward, ref.chunk, ref.micro_batch});
      }
    }
    if (forward ? !last : !first) {
      PoolSlot previous;
      (forward ? action.output : action.grad_output) = TakeSlot(r, &previous);
      if (previous.has_transfer) action.waits.push_back(previous.transfer);
    }
  }
  rank.step = 0;
  rank.began = now;
  const std::vector<TimedStep>& steps = StepsOf(rank, ref);
  rank.done.assign(steps.size(), false);
  return true;
}

void StepSimulator::EndAction(int r, int64_t now) {
  Rank& rank = ranks_[r];
  const OrderedAction& action = classes_[r].program->compute[rank.action];
  const ActionRef& ref = action.ref;
  if (keep_spans_) {
    const bool update = ref.kind == ActionKind::kUpdate;
    Span(r, false, update ? std::string(LetterOf(ref.kind)) : NameOf(ref, *classes_[r].chunks),
         rank.began, now);
  }
  if (ref.kind <= ActionKind::kBackward) {
    const bool forward = ref.kind == ActionKind::kForward;
    const bool trains = !(*classes_[r].chunks)[ref.chunk].backward.empty();
    const auto release = [&](int64_t slot) {
      if (slot < 0) return;
      rank.free_slots.insert(slot);
      rank.pool[slot] = {true, false, ref, {}};
    };
    if (!forward || !trains) release(action.input);
    release(action.grad_input);
    if (action.output >= 0) AskForTransfer(r, action, true, now);
    if (action.grad_output >= 0) AskForTransfer(r, action, false, now);
  }
  ++rank.action;
  rank.step = -1;
  // A receive posted one action ahead may start now.
  TryStart(r, now);
}

// To a stage of the same class, whose input then lies where the output does. False: there is none.
bool StepSimulator::HandOver(int r, const OrderedAction& action, bool forward) {
  const absl::optional<ActionRef> next =
      NeighbourInPlace(spec_.stages, *classes_[r].chunks, action.ref, true);
  if (!next.has_value()) return false;
  Rank& rank = ranks_[r];
  (forward ? rank.inputs : rank.grad_inputs)[next->chunk][next->micro_batch] =
      forward ? action.output : action.grad_output;
  return true;
}

void StepSimulator::AskForTransfer(int r, const OrderedAction& action, bool forward, int64_t now) {
  if (HandOver(r, action, forward)) return;
  const int stage = (*classes_[r].chunks)[action.ref.chunk].stage + (forward ? 1 : -1);
  PendingTransfer transfer;
  transfer.channel = ChannelFrom((*classes_[r].chunks)[action.ref.chunk].stage, forward);
  Channel& channel = channels_[transfer.channel];
  ++channel.outboxes;
  transfer.ns = channel.ns;
  transfer.src = r;
  transfer.dst = spec_.stages[stage].rank_class;
  const int chunk = spec_.stages[stage].chunk;
  transfer.send = {forward ? TransferKind::kSendForward : TransferKind::kSendBackward,
                   action.ref.chunk, action.ref.micro_batch};
  transfer.recv = {forward ? TransferKind::kRecvForward : TransferKind::kRecvBackward, chunk,
                   action.ref.micro_batch};
  transfer.ready = now;
  transfer.consumer = position_[transfer.dst][forward ? 0 : 1][chunk][action.ref.micro_batch];
  transfer.src_slot = forward ? action.output : action.grad_output;
  const int id = static_cast<int>(transfers_.size());
  transfers_.push_back(transfer);
  channel.pending.push_back(id);
  ++ranks_[r].pending_transfers;
  ++ranks_[transfer.dst].pending_transfers;
}

bool StepSimulator::MayStart(const PendingTransfer& transfer, int64_t now) const {
  return ranks_[transfer.src].queue_free <= now && ranks_[transfer.dst].queue_free <= now &&
         ranks_[transfer.dst].action >= transfer.consumer - 1;
}

// Starts what a class' communication queue can run now: the request that has waited longest.
void StepSimulator::TryStart(int r, int64_t now) {
  Rank& rank = ranks_[r];
  if (rank.queue_free > now) return;
  int best = -1;
  for (int c : rank.channels) {
    if (channels_[c].pending.empty()) continue;
    const int t = channels_[c].pending.front();
    if (MayStart(transfers_[t], now) &&
        (best < 0 || transfers_[t].ready < transfers_[best].ready)) {
      best = t;
    }
  }
  // The update's collectives may span stages: they come after every transfer of the class.
  const bool collective = !rank.collectives.empty() &&
                          (!rank.collectives.front().update || rank.pending_transfers == 0);
  if (collective && (best < 0 || rank.collectives.front().ready < transfers_[best].ready)) {
    const PendingCollective c = rank.collectives.front();
    rank.collectives.pop_front();
    rank.queue_free = now + c.ns;
    rank.placed = c.action == rank.placed_action ? rank.placed + 1 : 1;
    rank.placed_action = c.action;
    if (keep_spans_) Span(r, true, "collective", now, now + c.ns);
    Push(now + c.ns, Event::kCollectiveDone, r, c.index, c.action);
  } else if (best >= 0) {
    StartTransfer(best, now);
  }
}

void StepSimulator::StartTransfer(int t, int64_t now) {
  PendingTransfer& transfer = transfers_[t];
  PoolSlot previous;
  transfer.dst_slot = TakeSlot(transfer.dst, &previous);
  transfer.began = now;
  channels_[transfer.channel].pending.pop_front();
  for (int r : {transfer.src, transfer.dst}) {
    --ranks_[r].pending_transfers;
    ranks_[r].queue_free = now + transfer.ns;
  }
  RecordTransfer(transfer.src, transfer.send, transfer.src_slot, transfer.dst);
  RecordTransfer(transfer.dst, transfer.recv, transfer.dst_slot, transfer.src);
  OrderedTransfer& recv = classes_[transfer.dst].program->transfers.back();
  if (previous.has_action) recv.after.push_back(previous.action);
  if (previous.has_transfer) recv.after_transfers.push_back(previous.transfer);
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
void StepSimulator::RecordTransfer(int r, const TransferRef& ref, int64_t slot, int peer) {
  const Rank& rank = ranks_[r];
  OrderedProgram& program = *classes_[r].program;
  OrderedTransfer transfer;
  transfer.ref = ref;
  transfer.slot = slot;
  transfer.bytes = spec_.stream_bytes;
  transfer.peer = peer;
  int anchor = rank.placed_action;
  transfer.issued = rank.placed;
  const int last = static_cast<int>(program.compute.size()) - 1;
  const int current = std::min(rank.action, last);
  if (rank.collectives.empty() || rank.collectives.front().action == current) {
    anchor = current;
    transfer.issued = rank.placed_action == current ? rank.placed : 0;
  }
  transfer.anchor = program.compute[anchor].ref;
  program.transfers.push_back(std::move(transfer));
}

int64_t StepSimulator::TakeSlot(int r, PoolSlot* last) {
  Rank& rank = ranks_[r];
  if (rank.free_slots.empty()) {
    rank.free_slots.insert(static_cast<int64_t>(rank.pool.size()));
    rank.pool.emplace_back();
  }
  const int64_t slot = *rank.free_slots.begin();
  rank.free_slots.erase(rank.free_slots.begin());
  *last = rank.pool[slot];
  return slot;
}

}  // namespace mgc
