#include "passes/plan/time/simulate_step.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

// All calls' steps in one list, collectives numbered over the whole action.
std::vector<TimedStep> Concatenate(const std::vector<StagedCall>& calls, int c,
                                   SegmentTimer* timer) {
  std::vector<TimedStep> steps;
  int base = 0;
  for (const StagedCall& call : calls) {
    if (call.running != kAnyRunning) steps.push_back({TimedStep::kAwait, 0, call.running});
    int count = 0;
    for (TimedStep step : timer->Of(call.segment, c)) {
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
      states_(classes_.size()) {
  for (size_t c = 0; c < states_.size(); ++c) {
    PrepareClass(static_cast<int>(c));
    FindLastBackward(static_cast<int>(c));
    Push(0, Event::kCompute, static_cast<int>(c), 0, 0);
  }
  PrepareChannels();
  result_.busy_ns.assign(states_.size(), 0);
  result_.collectives.assign(states_.size(), {});
  result_.transfers_ns.assign(states_.size(), 0);
  result_.rounds.assign(states_.size(), {});
}

StepSimulator StepSimulator::With(std::vector<SimulatedClass> classes) const {
  StepSimulator other = *this;
  other.classes_ = std::move(classes);
  for (size_t c = 0; c < states_.size(); ++c) {
    const ClassState& state = states_[c];
    MGC_CHECK(state.action < state.last_backward ||
              (state.action == state.last_backward && state.step < 0))
        << "a last backward has begun";
    const std::vector<StagedChunk>& chunks = *other.classes_[c].chunks;
    for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      other.PrepareList(static_cast<int>(c), chunk * kNumChunkLists + kLastBackwardList,
                        chunks[chunk].last_backward);
    }
  }
  return other;
}

int64_t StepSimulator::BundleBytes(int stage, bool forward) const {
  if (spec_.boundary_bytes.has_value()) return *spec_.boundary_bytes;
  const StagePlace& place = spec_.stages[static_cast<size_t>(stage)];
  return BytesBehind(spec_.timer.segments(), (*classes_[place.rank_class].chunks)[place.chunk],
                     forward ? StagedBase::kOutput : StagedBase::kGradOutput);
}

void StepSimulator::PrepareChannels() {
  channels_.resize(2 * static_cast<size_t>(num_stages_));
  for (int s = 0; s < num_stages_; ++s) {
    for (const bool forward : {true, false}) {
      const int to = forward ? s + 1 : s - 1;
      if (to < 0 || to >= num_stages_) continue;
      const int src = spec_.stages[s].rank_class;
      const int dst = spec_.stages[to].rank_class;
      const int id = ChannelFrom(s, forward);
      Channel& channel = channels_[id];
      channel.bytes = BundleBytes(s, forward);
      if (src == dst || channel.bytes == 0) continue;  // handed over in place, or nothing
      channel.src = src;
      channel.dst = dst;
      channel.ns = TransferNs(spec_.timer.model(), src, dst, channel.bytes);
      channel.src_place = static_cast<int>(states_[src].channels.size());
      channel.dst_place = static_cast<int>(states_[dst].channels.size());
      for (const int end : {src, dst}) {
        ClassState& state = states_[end];
        state.channels.push_back(id);
        const auto known = std::find(state.sources.begin(), state.sources.end(), src);
        if (known == state.sources.end()) state.sources.push_back(src);
      }
    }
  }
}

void StepSimulator::PrepareList(int c, size_t list, const std::vector<StagedCall>& calls) {
  ClassState& state = states_[static_cast<size_t>(c)];
  state.steps[list] = Concatenate(calls, c, &spec_.timer);
  state.done.resize(std::max(state.done.size(), state.steps[list].size()), -1);
  if (list < state.quiet_steps.size()) state.quiet_steps[list] = QuietSteps(state.steps[list]);
}

void StepSimulator::PrepareClass(int c) {
  const SimulatedClass& simulated = classes_[c];
  ClassState& state = states_[c];
  const size_t lists = simulated.chunks->size() * kNumChunkLists;
  state.steps.resize(lists + 1);
  if (!keep_spans_) state.quiet_steps.resize(lists);
  size_t list = 0;
  for (const StagedChunk& chunk : *simulated.chunks) {
    for (const auto* calls : ListsOf(chunk)) PrepareList(c, list++, *calls);
  }
  PrepareList(c, list, *simulated.update);
  const size_t all = simulated.chunks->size() * static_cast<size_t>(spec_.micro_batches);
  state.inputs.assign(all, -1);
  state.grad_inputs.assign(all, -1);
  state.forwards.assign(all, -1);
  state.backwards.assign(all, -1);
  for (size_t i = 0; i < simulated.program->compute.size(); ++i) {
    const ActionRef& ref = simulated.program->compute[i].ref;
    if (!IsOfMicroBatch(ref.kind)) continue;
    const bool forward = ref.kind == ActionKind::kForward;
    (forward ? state.forwards : state.backwards)[IndexOf(ref.chunk, ref.micro_batch)] =
        static_cast<int>(i);
  }
}

// An action that computes ends in another event than it begins in.
void StepSimulator::FindLastBackward(int c) {
  ClassState& state = states_[static_cast<size_t>(c)];
  const std::vector<OrderedAction>& actions = classes_[static_cast<size_t>(c)].program->compute;
  const auto last = std::find_if(actions.begin(), actions.end(), [&](const OrderedAction& action) {
    return action.ref.kind == ActionKind::kBackward &&
           action.ref.micro_batch == spec_.micro_batches - 1;
  });
  state.last_backward = static_cast<int>(last - actions.begin());
  state.near_last = std::max(state.last_backward - 1, 0);
  const auto computes = [&](int action) {
    const std::vector<TimedStep>& steps = StepsOf(c, actions[static_cast<size_t>(action)].ref);
    return std::any_of(steps.begin(), steps.end(),
                       [](const TimedStep& step) { return step.kind == TimedStep::kRun; });
  };
  while (state.near_last > 0 && !computes(state.near_last)) --state.near_last;
  near_last_ |= state.near_last == 0;
}

size_t StepSimulator::ListOfSteps(int c, const ActionRef& ref) const {
  if (ref.kind == ActionKind::kUpdate) return states_[c].steps.size() - 1;
  const size_t chunk = static_cast<size_t>(ref.chunk);
  return chunk * kNumChunkLists + ListOf((*classes_[c].chunks)[chunk], ref, spec_.micro_batches);
}

const ActionRef& StepSimulator::RefOf(int c) const {
  return classes_[c].program->compute[states_[c].action].ref;
}

void StepSimulator::Push(int64_t time, Event::Kind kind, int rank_class, int index, int action) {
  events_.push({time, rank_class, kind, index, action});
}

void StepSimulator::Span(int c, bool communication, std::string name, int64_t begin, int64_t end) {
  result_.spans.push_back({c, communication, std::move(name), begin, end});
}

absl::Status StepSimulator::RunEvents(bool to_last_backward) {
  while (!events_.empty() && !(to_last_backward && near_last_)) {
    const Event event = events_.top();
    events_.pop();
    if (event.time >= kMaxNs) return StepOfCenturies(spec_.timer.model().machine);
    if (!HandleEvent(event)) continue;
    result_.makespan_ns = event.time;
    Advance(event.rank_class, event.time);
    TryStart(event.rank_class, event.time);
  }
  return absl::OkStatus();
}

absl::Status StepSimulator::RunToLastBackward() { return RunEvents(true); }

absl::StatusOr<SimulatedStep> StepSimulator::Run() {
  MGC_RETURN_IF_ERROR(RunEvents(false));
  for (size_t c = 0; c < states_.size(); ++c) {
    const OrderedProgram& program = *classes_[c].program;
    if (states_[c].action == static_cast<int>(program.compute.size())) continue;
    const ActionRef& ref = program.compute[states_[c].action].ref;
    return absl::FailedPreconditionError(
        absl::StrCat("the schedule waits for itself: pipeline rank ", c, " never runs ",
                     NameOf(ref, *classes_[c].chunks), " [order_c1]"));
  }
  for (size_t c = 0; c < states_.size(); ++c) {
    result_.busy_ns[c] = states_[c].busy;
    result_.update_ns.push_back(states_[c].update);
  }
  return std::move(result_);
}

// False: it is the end of a quiet run that has been interrupted.
bool StepSimulator::HandleEvent(const Event& event) {
  ClassState& state = states_[event.rank_class];
  current_class_ = event.rank_class;
  switch (event.kind) {
    case Event::kCompute:
      state.running = false;
      break;
    case Event::kQuietDone:
      if (!state.quiet.has_value() || state.quiet_runs != event.index) return false;
      PassQuiet(event.rank_class, QuietOf(event.rank_class).point(state.quiet->from).until);
      break;
    case Event::kBackgroundDone:
      --state.background;
      break;
    case Event::kCollectiveDone:
      state.done[event.index] = event.action;
      break;
    case Event::kTransferDone:
      free_transfers_.push_back(event.index);
      FinishTransfer(transfers_[event.index], event.time);
      break;
  }
  return true;
}

// The receiver has its input, the sender its slot back.
void StepSimulator::FinishTransfer(PendingTransfer t, int64_t now) {
  auto& inputs = t.recv.kind == TransferKind::kRecvForward ? states_[t.dst].inputs
                                                           : states_[t.dst].grad_inputs;
  inputs[IndexOf(t.recv.chunk, t.recv.micro_batch)] = t.dst_slot;
  const ClassState& to = states_[t.dst];
  if (to.step < 0 && to.action == t.consumer) {
    int64_t& waited = result_.transfers_ns[static_cast<size_t>(t.dst)];
    waited = Later(waited, now - std::max(t.ready, to.ended));
  }
  --channels_[t.channel].outboxes;
  states_[t.src].free_slots.push(t.src_slot);
  states_[t.src].pool[t.src_slot] = {false, true, {}, t.send};
  Advance(t.dst, now);
  TryStart(t.dst, now);
}

// Runs a class' compute queue until it has to wait.
void StepSimulator::Advance(int c, int64_t now) {
  ClassState& state = states_[c];
  const OrderedProgram& program = *classes_[c].program;
  while (!state.running && state.action < static_cast<int>(program.compute.size())) {
    if (state.step < 0 && !BeginAction(c, now)) return;
    const std::vector<TimedStep>& steps = StepsOf(c, program.compute[state.action].ref);
    if (state.step == static_cast<int>(steps.size())) {
      EndAction(c, now);
      continue;
    }
    const TimedStep& step = steps[state.step];
    if (IsHeldBack(c, step, now) || BeginQuiet(c, now)) return;
    ++state.step;
    if (step.kind == TimedStep::kStart) {
      const bool update = program.compute[state.action].ref.kind == ActionKind::kUpdate;
      state.collectives.push_back(
          {state.action, step.collective, now, step.ns, update, step.background, step.axes});
      if (step.background) ++state.background;
      TryStart(c, now);
    } else if (step.kind == TimedStep::kRun) {
      const int64_t ns = Later(step.ns, PassRuns(c, steps));
      state.running = true;
      state.run_end = now + ns;
      state.busy += ns;
      const bool update = program.compute[state.action].ref.kind == ActionKind::kUpdate;
      if (update) state.update += ns;
      Push(now + ns, Event::kCompute, c, 0, 0);
    }
  }
}

// Takes what computes next, and how long. What may start on the communication queue does not hang
// on the times in between, but for collectives that let transfers pass.
int64_t StepSimulator::PassRuns(int c, const std::vector<TimedStep>& steps) {
  ClassState& state = states_[c];
  // A transfer that is awaited might start at a time in between.
  if (keep_spans_ || !state.collectives.empty() || IsAsked(state)) return 0;
  int64_t ns = 0;
  while (state.step < static_cast<int>(steps.size()) && steps[state.step].kind == TimedStep::kRun) {
    ns = Later(ns, steps[state.step++].ns);
  }
  return ns;
}

// Whether a step waits for a collective; counts how long.
bool StepSimulator::IsHeldBack(int c, const TimedStep& step, int64_t now) {
  ClassState& state = states_[c];
  const bool waits =
      (step.kind == TimedStep::kWait && state.done[step.collective] != state.action) ||
      (step.kind == TimedStep::kAwait && state.background > step.collective);
  if (waits && state.blocked_from < 0) state.blocked_from = now;
  if (!waits && state.blocked_from >= 0 && state.blocked_from < now) {
    const AxisSet axes = step.kind == TimedStep::kWait ? step.axes : state.background_axes;
    int64_t& exposed_ns = result_.collectives[static_cast<size_t>(c)].exposed[axes];
    exposed_ns = Later(exposed_ns, now - state.blocked_from);
  }
  if (!waits) state.blocked_from = -1;
  return waits;
}

// Without this a stage ahead of a slower one would fill outboxes in number with the micro-batches.
// Of several chunks a rank's later ones hold its first back; waiting here would only cost time.
bool StepSimulator::IsBackedUp(int stage, bool forward) const {
  const bool one_chunk_each = num_stages_ == static_cast<int>(states_.size());
  return one_chunk_each && channels_[ChannelFrom(stage, forward)].outboxes >= kMaxOutboxes;
}

bool StepSimulator::Takes(int stage, bool forward) const {
  const int from = forward ? stage - 1 : stage + 1;
  return from >= 0 && from < num_stages_ && Leaves(from, forward);
}

bool StepSimulator::BeginAction(int c, int64_t now) {
  ClassState& state = states_[c];
  OrderedAction& action = classes_[c].program->compute[state.action];
  const ActionRef& ref = action.ref;
  if (IsOfMicroBatch(ref.kind)) {
    const StagedChunk& chunk = (*classes_[c].chunks)[ref.chunk];
    const bool forward = ref.kind == ActionKind::kForward;
    const bool takes = Takes(chunk.stage, forward);
    const size_t index = IndexOf(ref.chunk, ref.micro_batch);
    const int64_t input = state.inputs[index];
    const int64_t grad = state.grad_inputs[index];
    if (takes && (forward ? input : grad) < 0) return false;
    if (IsBackedUp(chunk.stage, forward)) return false;
    action.input = input;
    const bool received =
        !NeighbourInPlace(spec_.stages, *classes_[c].chunks, ref, false).has_value();
    if (!forward) action.grad_input = grad;
    if (takes && received && spec_.lists_transfers) {
      action.waits.push_back({forward ? TransferKind::kRecvForward : TransferKind::kRecvBackward,
                              ref.chunk, ref.micro_batch});
    }
    if (Leaves(chunk.stage, forward)) {
      PoolSlot previous;
      (forward ? action.output : action.grad_output) = TakeSlot(c, &previous);
      if (previous.has_transfer && spec_.lists_transfers) {
        action.waits.push_back(previous.transfer);
      }
    }
  }
  state.step = 0;
  state.began = now;
  if (spec_.round > 0) MarkRound(c, ref, now);
  return true;
}

void StepSimulator::MarkRound(int c, const ActionRef& ref, int64_t now) {
  const bool begins = ref.kind == ActionKind::kForward && ref.chunk == 0;
  if (!begins || ref.micro_batch % spec_.round != 0) return;
  const auto i = static_cast<size_t>(c);
  result_.rounds[i].push_back(
      {now, states_[i].busy, result_.transfers_ns[i], result_.collectives[i]});
}

void StepSimulator::EndAction(int c, int64_t now) {
  ClassState& state = states_[c];
  const OrderedAction& action = classes_[c].program->compute[state.action];
  const ActionRef& ref = action.ref;
  if (keep_spans_) {
    const bool update = ref.kind == ActionKind::kUpdate;
    Span(c, false, update ? std::string(LetterOf(ref.kind)) : NameOf(ref, *classes_[c].chunks),
         state.began, now);
  }
  if (IsOfMicroBatch(ref.kind)) {
    const bool forward = ref.kind == ActionKind::kForward;
    const bool trains = !(*classes_[c].chunks)[ref.chunk].backward.empty();
    const auto release = [&](int64_t slot) {
      if (slot < 0) return;
      state.free_slots.push(slot);
      state.pool[slot] = {true, false, ref, {}};
    };
    if (forward ? !trains : trains) release(action.input);
    release(action.grad_input);
    if (action.output >= 0) AskForTransfer(c, action, true, now);
    if (action.grad_output >= 0) AskForTransfer(c, action, false, now);
  }
  ++state.action;
  state.step = -1;
  state.ended = now;
  near_last_ |= state.action >= state.near_last;
  // A receive posted one action ahead may start now.
  TryStart(c, now);
}

}  // namespace mgc
