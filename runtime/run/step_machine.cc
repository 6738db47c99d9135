#include "runtime/run/step_machine.h"

#include <algorithm>
#include <utility>

#include "runtime/run/deadlock.h"
#include "runtime/run/where.h"

namespace mgc {
StepMachine::StepMachine(const LoadedPlan& plan, Communicator* communicator, Workers& workers,
                         Device& device, absl::Span<RankProgress> progress,
                         const TraceLimits& trace, absl::optional<uint64_t> shuffle)
    : plan_(&plan),
      communicator_(communicator),
      workers_(workers),
      device_(device),
      ranks_(static_cast<size_t>(plan.local.size())),
      rows_(plan.plan.global_batch_size / plan.plan.num_micro_batches),
      tracing_(trace.room > 0),
      trace_steps_(trace.steps),
      shuffling_(shuffle.has_value()),
      dice_(shuffle.value_or(0)) {
  for (size_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    rank.id = static_cast<int>(plan.local.begin) + static_cast<int>(r);
    rank.index = plan.ranks[static_cast<size_t>(rank.id)].index;
    TakeLists(rank);
    const std::vector<int>& local = rank.rank_class->local;
    rank.place = static_cast<int>(std::find(local.begin(), local.end(), rank.id) - local.begin());
    rank.progress = &progress[r];
    rank.dice = shuffle.value_or(0) + r;
    rank.compute_trace = TraceBuffer(trace.room);
    rank.comm_trace = TraceBuffer(trace.room);
  }
  comm_tiles_.resize(ranks_.size());
  MakeRoom(plan);
  ready_compute_.reserve(ranks_.size());
  ready_comm_.reserve(ranks_.size());
}

void StepMachine::MakeRoom(const LoadedPlan& plan) {
  const auto grow = [](auto* list, size_t size) { list->resize(std::max(list->size(), size)); };
  for (Rank& rank : ranks_) {
    grow(&rank.formals, plan.most_formals);
    grow(&rank.inputs, plan.most_operands);
    grow(&rank.outputs, plan.most_operands);
    grow(&rank.sample, static_cast<size_t>(plan.plan.seq_length) + 1);
  }
  for (const std::vector<std::vector<int>>& groups : plan.groups) {
    for (size_t r = 0; r < groups.size(); ++r) {
      CommTiles& tiles = comm_tiles_[r];
      grow(&tiles.inputs, groups[r].size() * plan.most_operands);
      grow(&tiles.outputs, groups[r].size() * plan.most_operands);
      grow(&tiles.exchanges, plan.most_operands);
    }
  }
}

void StepMachine::TakeLists(Rank& rank) {
  const int rank_class = plan_->ranks[static_cast<size_t>(rank.id)].rank_class;
  rank.rank_class = &plan_->classes[static_cast<size_t>(rank_class)];
  for (bool eval : {false, true}) {
    const StepClass& steps = plan_->tables(eval).classes[static_cast<size_t>(rank_class)];
    rank.longest_ns[eval].assign(steps.actions.size(), 0);
  }
}

void StepMachine::ChangeLists(const LoadedPlan& plan) {
  const std::lock_guard<std::mutex> no_poll(polling_);
  plan_ = &plan;
  for (Rank& rank : ranks_) {
    TakeLists(rank);
    rank.compute_trace.Clear();
    rank.comm_trace.Clear();
  }
}

absl::Status StepMachine::Run(const StepInput& input) {
  if (absl::Status failed = status(); !failed.ok()) return failed;
  input_ = input;
  finished_ = 0;
  recording_ = tracing_ && input.traced && steps_recorded_ < trace_steps_;
  if (recording_) ++steps_recorded_;
  for (Rank& rank : ranks_) Reset(rank);
  device_.BeginStep({&plan_->tables(input_.eval), input_.data.first_sample, recording_,
                     check_ != FiniteCheck::kLoss});
  workers_.Run(*this);
  const absl::Status drained = device_.Drain(/*complete=*/status().ok());
  if (!drained.ok()) Fail(WhereItStood(drained));
  absl::Status ended = status();
  for (Rank& rank : ranks_) {
    rank.progress->busy_ns.set(rank.busy_ns);
    // What a failed step was at is left to be read.
    if (ended.ok()) rank.Publish(RankActivity::kOutside, NowNs());
  }
  if (ended.ok()) return ended;
  const std::lock_guard<std::mutex> no_poll(polling_);  // what others move is in the traces too
  if (tracing_) RecordOpenActions();
  return ended;
}

// An error that the device has found late, at the item that the first rank stood at, if it knows.
absl::Status StepMachine::WhereItStood(const absl::Status& drained) const {
  for (const Rank& rank : ranks_) {
    const int64_t done = device_.items_done(PlaceOf(rank));
    if (done < 0 || done >= static_cast<int64_t>(rank.comm_next)) continue;
    const CommItem& item = rank.program->comm[static_cast<size_t>(done)];
    return FailureOfItem(*plan_, rank.id, input_.eval, item, drained);
  }
  return drained;
}

absl::Status StepMachine::status() const {
  std::lock_guard<std::mutex> lock(workers_.mutex());
  return status_;
}

void StepMachine::Fail(const absl::Status& why) {
  std::lock_guard<std::mutex> lock(workers_.mutex());
  status_.Update(why);
  workers_.Announce();
}

void StepMachine::Reset(Rank& rank) {
  rank.program = input_.eval ? &rank.rank_class->eval : &rank.rank_class->train;
  rank.action = rank.call = rank.instr = 0;
  rank.inside = false;
  rank.call_ordinal = 0;
  rank.begun = false;
  rank.started = rank.actions_done = rank.collectives_done = rank.transfers_done = 0;
  rank.comm_next = 0;
  rank.collectives_needed = rank.transfers_needed = 0;
  rank.state = RankState::kReady;
  rank.busy_ns = 0;
  rank.progress->steps.set(rank.progress->steps.get() + 1);
  rank.progress->eval.set(input_.eval);
  rank.progress->plan.set(plan_->number);
  rank.progress->micro_batches.set(plan_->plan.num_micro_batches);
  rank.PublishPlace();
  rank.PublishItem();
  rank.Publish(RankActivity::kReady, NowNs());
  ready_compute_.push_back(PlaceOf(rank));
}

// A task below the number of ranks is a rank's compute queue, one above a rank's communication.
int StepMachine::Next() {
  if (!status_.ok()) return running_ == 0 ? kOver : kIdle;
  const int ranks = static_cast<int>(ranks_.size());
  if (!ready_comm_.empty()) return TakePosted(PickAt(ready_comm_)) + ranks;
  if (!ready_compute_.empty()) {
    ++running_;
    const int rank = Pick(&ready_compute_);
    ranks_[rank].state = RankState::kRunning;
    return rank;
  }
  if (running_ > 0 || remote_ > 0 || !gate_.held().empty()) return kIdle;
  bool done = finished_ == ranks;
  for (const Rank& rank : ranks_) done = done && rank.Head() == nullptr;
  if (!done) {
    status_ = absl::FailedPreconditionError(DescribeDeadlock(*plan_, ranks_, input_.eval));
  }
  return kOver;
}

int StepMachine::Pick(std::vector<int>* ready) {
  const size_t at = PickAt(*ready);
  const int picked = (*ready)[at];
  ready->erase(ready->begin() + at);
  return picked;
}

void StepMachine::Run(int task, int worker) {
  const int ranks = static_cast<int>(ranks_.size());
  if (task < ranks) {
    RunCompute(ranks_[task], worker);
  } else {
    RunItem(ranks_[task - ranks]);
  }
}

void StepMachine::MakeReady(Rank& rank) {
  rank.state = RankState::kReady;
  ready_compute_.push_back(PlaceOf(rank));
  workers_.Announce();
}

void StepMachine::HoldUpdates() {
  std::lock_guard<std::mutex> lock(workers_.mutex());
  gate_.Close();
}

void StepMachine::KeepHolding() {
  std::lock_guard<std::mutex> lock(workers_.mutex());
  for (int place : gate_.held()) ranks_[static_cast<size_t>(place)].progress->since_ns.set(NowNs());
}

void StepMachine::LetUpdates() {
  std::lock_guard<std::mutex> lock(workers_.mutex());
  for (int place : gate_.Open(NowNs())) MakeReady(ranks_[static_cast<size_t>(place)]);
  workers_.Announce();
}

int64_t StepMachine::held_ns() const {
  std::lock_guard<std::mutex> lock(workers_.mutex());
  return gate_.held_ns();
}

}  // namespace mgc
