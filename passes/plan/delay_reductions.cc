#include "passes/plan/delay_reductions.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

namespace mgc {
namespace {

// Whether a segment starts what it does not wait for. Of a last backward, reductions alone do where
// layers neither gather nor sum for themselves; casts may stand before them.
bool RunsOn(const std::vector<TimedStep>& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const TimedStep& step) {
    return step.kind == TimedStep::kStart && step.background;
  });
}

// Runs a list of calls on one compute and one communication queue, and decides where reductions go.
class Delay {
 public:
  Delay(int coordinate, SegmentTimer* timer) : coordinate_(coordinate), timer_(timer) {}

  bool AnyRunsOn(const std::vector<StagedCall>& calls) {
    return std::any_of(calls.begin(), calls.end(),
                       [this](const StagedCall& call) { return RunsOn(StepsOf(call)); });
  }

  std::vector<StagedCall> Run(const std::vector<StagedCall>& calls) {
    FindDue(calls);
    for (size_t i = 0; i < calls.size(); ++i) {
      if (RunsOn(StepsOf(calls[i]))) {
        waiting_.push_back(calls[i]);
        continue;
      }
      StartThoseThatFit(due_[i]);
      RunCall(calls[i]);
    }
    made_.insert(made_.end(), waiting_.begin(), waiting_.end());
    return std::move(made_);
  }

 private:
  const std::vector<TimedStep>& StepsOf(const StagedCall& call) {
    return timer_->Of(call.segment, coordinate_);
  }

  // By call: from its begin until one of the calls from it on asks for a collective.
  void FindDue(const std::vector<StagedCall>& calls) {
    due_.assign(calls.size() + 1, kMaxNs);
    for (size_t i = calls.size(); i-- > 0;) {
      int64_t ns = 0;
      due_[i] = due_[i + 1];
      for (const TimedStep& step : StepsOf(calls[i])) {
        if (step.kind == TimedStep::kStart && !step.background) {
          due_[i] = 0;
          break;
        }
        if (step.kind == TimedStep::kRun) ns = Later(ns, step.ns);
      }
      due_[i] = Later(due_[i], ns);
    }
  }

  void StartThoseThatFit(int64_t due) {
    while (!waiting_.empty()) {
      int64_t ns = 0;
      for (const TimedStep& step : StepsOf(waiting_.front())) ns = Later(ns, step.ns);
      const int64_t end = Later(std::max(queue_free_, now_), ns);
      if (due != kMaxNs && end > Later(now_, due)) return;
      queue_free_ = end;
      made_.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
  }

  void RunCall(const StagedCall& call) {
    std::map<int, int64_t> ends;  // of its collectives
    for (const TimedStep& step : StepsOf(call)) {
      if (step.kind == TimedStep::kRun) {
        now_ = Later(now_, step.ns);
      } else if (step.kind == TimedStep::kStart) {
        queue_free_ = Later(std::max(queue_free_, now_), step.ns);
        ends[step.collective] = queue_free_;
      } else {
        now_ = std::max(now_, ends[step.collective]);
      }
    }
    made_.push_back(call);
  }

  const int coordinate_;
  SegmentTimer* const timer_;
  std::vector<int64_t> due_;
  std::deque<StagedCall> waiting_;  // reductions
  std::vector<StagedCall> made_;
  int64_t now_ = 0;  // of the compute queue
  int64_t queue_free_ = 0;
};

}  // namespace

bool DelayReductions(int coordinate, SegmentTimer* timer, StagedChunk* chunk) {
  Delay delay(coordinate, timer);
  // What layers gather or sum for themselves is waited for by counts, which hold in this order
  // only.
  if (delay.AnyRunsOn(chunk->backward)) return false;
  std::vector<StagedCall> delayed = delay.Run(chunk->last_backward);
  std::swap(chunk->last_backward, delayed);
  return !std::equal(delayed.begin(), delayed.end(), chunk->last_backward.begin(),
                     [](const StagedCall& a, const StagedCall& b) {
                       return a.segment == b.segment && a.layer == b.layer;
                     });
}

}  // namespace mgc
