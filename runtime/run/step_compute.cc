// The compute queues of StepMachine.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime/run/step_machine.h"
#include "runtime/run/where.h"

namespace mgc {
namespace {

constexpr uint64_t kGiveWayOneIn = 4;  // when shuffling

// Splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
uint64_t NextDice(uint64_t* state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace

void StepMachine::RunCompute(Rank& rank, int worker) {
  rank.free_ns = 0;
  if (!rank.begun) Begin(rank);
  while (rank.action < rank.program->steps->actions.size()) {
    if (!rank.inside && !Enter(rank)) return;
    if (!RunCalls(rank, worker)) return;
    if (!Leave(rank)) return;
    BeginRemote();
  }
  rank.Publish(RankActivity::kFinished, NowNs());
  std::lock_guard<std::mutex> lock(workers_.mutex());
  rank.state = RankState::kFinished;
  ++finished_;
  --running_;
}

void StepMachine::Begin(Rank& rank) {
  const PlanClass& plan_class = *rank.rank_class->plan_class;
  const Queue queue = ComputeQueue(PlaceOf(rank));
  for (const Range& range : ZeroedRanges(plan_class, input_.eval)) {
    device_.Zero(queue, range.begin, range.end - range.begin);
    rank.high = std::max(rank.high, range.end);
  }
  for (const NamedAddress& scalar : plan_class.scalars) {
    for (const NamedScalar& given : input_.scalars) {
      if (scalar.name != given.name) continue;
      device_.PutBytes(queue, scalar.address, &given.value, sizeof(given.value));
    }
  }
  std::lock_guard<std::mutex> lock(workers_.mutex());
  rank.begun = true;
  TryItem(rank);
}

bool StepMachine::WaitFor(Rank& rank, int64_t collectives, int64_t transfers) {
  std::lock_guard<std::mutex> lock(workers_.mutex());
  rank.collectives_needed = collectives;
  rank.transfers_needed = transfers;
  if (rank.Satisfied()) return true;
  rank.PublishPlace();
  rank.Publish(RankActivity::kWaiting, NowNs());
  rank.state = RankState::kBlocked;
  --running_;
  return false;
}

// Waits until so many collectives have been issued; what is issued behind awaits that they are
// done.
bool StepMachine::WaitForCollectives(Rank& rank, int64_t count, Wait why) {
  if (!WaitFor(rank, count, 0)) return false;
  const int place = PlaceOf(rank);
  device_.Await(ComputeQueue(place), {place, MarkKind::kCollectives, count}, why);
  return true;
}

bool StepMachine::GiveWay(Rank& rank) {
  if (!shuffling_ || NextDice(&rank.dice) % kGiveWayOneIn != 0) return false;
  std::lock_guard<std::mutex> lock(workers_.mutex());
  MakeReady(rank);
  --running_;
  return true;
}

bool StepMachine::Enter(Rank& rank) {
  const StepAction& action = rank.program->steps->actions[rank.action];
  if (const int64_t needed = action.transfers_needed; needed > 0) {
    if (!WaitFor(rank, 0, needed)) return false;
    const int place = PlaceOf(rank);
    device_.Await(ComputeQueue(place), {place, MarkKind::kTransfers, needed}, Wait::kAction);
  }
  if (action.action->ref.kind == ActionKind::kUpdate && !MayUpdate(rank)) return false;
  rank.inside = true;
  rank.call = rank.instr = 0;
  rank.action_begin_ns = NowNs();
  rank.progress->usual_ns.set(rank.longest_ns[input_.eval][rank.action]);
  return true;
}

// False while updates are held: the rank comes here again when they are let go. That of an
// evaluation writes nothing that others read.
bool StepMachine::MayUpdate(Rank& rank) {
  std::lock_guard<std::mutex> lock(workers_.mutex());
  if (input_.eval || !gate_.closed()) return true;
  rank.PublishPlace();
  rank.Publish(RankActivity::kHeld, NowNs());
  rank.state = RankState::kHeld;
  --running_;
  gate_.Hold(PlaceOf(rank), NowNs());
  return false;
}

bool StepMachine::RunCalls(Rank& rank, int worker) {
  const std::vector<LoadedCall>& calls = *rank.program->calls[rank.action];
  for (; rank.call < calls.size(); ++rank.call, rank.instr = 0) {
    const LoadedCall& call = calls[rank.call];
    if (rank.instr == 0 && !BeginCall(rank, call)) return false;
    const size_t size = call.segment->instrs.size();
    while (rank.instr < size) {
      if (!RunInstr(rank, call, worker)) return false;
      ++rank.instr;
      if (rank.instr < size && GiveWay(rank)) return false;
    }
    rank.call_ordinal += static_cast<int64_t>(call.segment->exchanges.size());
  }
  return true;
}

// False when the step has failed elsewhere.
bool StepMachine::Leave(Rank& rank) {
  const int64_t now = NowNs();
  int64_t& longest = rank.longest_ns[input_.eval][rank.action];
  longest = std::max(longest, now - rank.action_begin_ns);
  if (recording_) {
    rank.compute_trace.Add({TraceKind::kAction, input_.eval, static_cast<int>(rank.action), -1, -1,
                            rank.action_begin_ns, now});
  }
  rank.inside = false;
  ++rank.action;
  device_.Record({PlaceOf(rank), MarkKind::kActions, static_cast<int64_t>(rank.action)});
  std::lock_guard<std::mutex> lock(workers_.mutex());
  ++rank.actions_done;
  if (!status_.ok()) {
    Stop(rank);
    return false;
  }
  TryItem(rank);
  return true;
}

// Gives the worker back for good. Mutex held.
void StepMachine::Stop(Rank& rank) {
  rank.state = RankState::kBlocked;
  --running_;
}

void StepMachine::FailInstr(Rank& rank, const LoadedCall& call, const absl::Status& why,
                            int64_t begin_ns) {
  if (tracing_) {
    rank.compute_trace.AddLast({TraceKind::kInstr, input_.eval, static_cast<int>(rank.action),
                                static_cast<int>(rank.call), static_cast<int>(rank.instr), begin_ns,
                                NowNs()});
  }
  absl::Status failure =
      FailureOfInstr(*plan_, rank.id, input_.eval, rank.action, call, rank.instr, why);
  {
    std::lock_guard<std::mutex> lock(workers_.mutex());
    status_.Update(std::move(failure));
  }
  device_.Abort();  // workers that issue to other processes come back
  std::lock_guard<std::mutex> lock(workers_.mutex());
  Stop(rank);
}

// Puts the actions that a failed step has not ended into the traces. Nothing runs.
void StepMachine::RecordOpenActions() {
  for (Rank& rank : ranks_) {
    if (!rank.inside) continue;
    rank.compute_trace.AddLast({TraceKind::kAction, input_.eval, static_cast<int>(rank.action), -1,
                                -1, rank.action_begin_ns, NowNs()});
  }
}

// False when the call must wait for collectives of calls before it; the rank comes here again.
bool StepMachine::BeginCall(Rank& rank, const LoadedCall& call) {
  const std::vector<int64_t>& needed = rank.program->steps->actions[rank.action].collectives_needed;
  if (!needed.empty() && needed[rank.call] > 0 &&
      !WaitForCollectives(rank, needed[rank.call], Wait::kCall)) {
    return false;
  }
  Bind(rank, call);
  return true;
}

void StepMachine::Bind(Rank& rank, const LoadedCall& call) const {
  const Action& action = *rank.program->steps->actions[rank.action].action;
  for (size_t f = 0; f < call.call->bindings.size(); ++f) {
    rank.formals[f] = AddressOf(call.call->bindings[f], action);
  }
}

// False when the rank must wait or has failed, and has given its worker back.
bool StepMachine::RunInstr(Rank& rank, const LoadedCall& call, int worker) {
  const LoadedInstr& instr = call.segment->instrs[rank.instr];
  switch (instr.kind) {
    case InstrKind::kStart:
      Start(rank);
      if (BeginRemote()) rank.free_ns = 0;
      return true;
    case InstrKind::kWait:
      return WaitForCollectives(rank, rank.call_ordinal + instr.exchange + 1, Wait::kInstr);
    case InstrKind::kCompute:
    case InstrKind::kLoad:
      break;
  }
  // The clock is most of what an instruction costs here.
  const int64_t begin = rank.free_ns > 0 ? rank.free_ns : NowNs();
  rank.PublishPlace();
  rank.Publish(RankActivity::kComputing, begin);
  absl::Status status = probe_ ? probe_(rank, nullptr) : absl::OkStatus();
  if (status.ok() && instr.kind == InstrKind::kCompute) {
    status = RunKernel(rank, call, instr, worker);
  } else if (status.ok()) {
    status = Load(rank, instr);
  }
  if (status.ok()) status = CheckResult(rank, call, instr);
  if (!status.ok()) {
    FailInstr(rank, call, status, begin);
    return false;
  }
  const int64_t end = NowNs();
  rank.busy_ns += end - begin;
  rank.free_ns = wants_help() ? 0 : end;
  if (recording_) {
    rank.compute_trace.Add({TraceKind::kInstr, input_.eval, static_cast<int>(rank.action),
                            static_cast<int>(rank.call), static_cast<int>(rank.instr), begin, end});
  }
  if (rank.free_ns == 0) Help();
  if (BeginRemote()) rank.free_ns = 0;
  return true;
}

absl::Status StepMachine::RunKernel(Rank& rank, const LoadedCall& call, const LoadedInstr& instr,
                                    int worker) {
  const int place = PlaceOf(rank);
  const auto resolve = [&](const std::vector<LoadedSlot>& slots, std::vector<void*>* out) {
    for (size_t i = 0; i < slots.size(); ++i) {
      const int64_t address = rank.formals[slots[i].formal] + slots[i].offset;
      rank.high = std::max(rank.high, address + slots[i].bytes);
      (*out)[i] = device_.At(place, address);
    }
  };
  resolve(instr.inputs, &rank.inputs);
  resolve(instr.outputs, &rank.outputs);
  KernelRun run;
  run.inputs = absl::MakeConstSpan(rank.inputs.data(), instr.inputs.size());
  run.outputs = absl::MakeConstSpan(rank.outputs.data(), instr.outputs.size());
  run.first_sample = FirstSample(rank);
  run.sample_in_step = run.first_sample - input_.data.first_sample;
  return device_.RunKernel(ComputeQueue(place), *call.kernel(rank.place, instr.kernel), run,
                           worker);
}

// Behind a kernel, while its call is bound.
absl::Status StepMachine::CheckResult(const Rank& rank, const LoadedCall& call,
                                      const LoadedInstr& instr) {
  const bool looks = check_ == FiniteCheck::kAll ||
                     (check_ == FiniteCheck::kGradients && instr.instr->phase == Phase::kBackward);
  if (!looks || instr.kind != InstrKind::kCompute) return absl::OkStatus();
  const absl::Status status = CheckFinite(plan_->plan, *call.segment->segment, instr,
                                          call.call->layer, rank, PlaceOf(rank), device_);
  // What has not run left the tiles as they were; the step's end has its error.
  if (status.ok() || !device_.Check().ok()) return absl::OkStatus();
  return Annotate(status, absl::StrCat("step ", rank.progress->steps.get()));
}

absl::Status StepMachine::Load(Rank& rank, const LoadedInstr& instr) {
  const LoadedCall& call = (*rank.program->calls[rank.action])[rank.call];
  const LoadedSlot& slot = instr.outputs[0];
  const int64_t address = rank.formals[slot.formal] + slot.offset;
  rank.high = std::max(rank.high, address + slot.bytes);
  absl::Status status;
  device_.Put(ComputeQueue(PlaceOf(rank)), address, slot.bytes, [&](char* to) {
    status = FillData(plan_->inputs, instr.data,
                      call.segment->segment->slots[instr.instr->outputs[0]], plan_->plan.mesh,
                      rank.id, input_.data, FirstSample(rank), absl::MakeSpan(rank.sample), to);
  });
  return status;
}

int64_t StepMachine::FirstSample(const Rank& rank) const {
  const ActionRef& ref = rank.program->steps->actions[rank.action].action->ref;
  return input_.data.first_sample + ref.micro_batch * rows_;
}

void StepMachine::Start(Rank& rank) {
  device_.Record({PlaceOf(rank), MarkKind::kStarts, rank.started + 1});
  std::lock_guard<std::mutex> lock(workers_.mutex());
  ++rank.started;
  TryItem(rank);
}

}  // namespace mgc
