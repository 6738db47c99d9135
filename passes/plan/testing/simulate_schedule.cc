#include "passes/plan/testing/simulate_schedule.h"

#include <algorithm>
#include <deque>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "passes/config/nearest_legal.h"

namespace mgc {
namespace {

constexpr int64_t kNotYet = -1;

class Simulation {
 public:
  Simulation(const PipelineSchedule& schedule, const ScheduleCosts& costs)
      : schedule_(schedule),
        costs_(costs),
        stages_(schedule.pp * schedule.vp),
        next_(schedule.lists.size(), 0),
        free_at_(schedule.lists.size(), 0),
        forward_end_(stages_ * schedule.micro_batches, kNotYet),
        gradient_end_(stages_ * schedule.micro_batches, kNotYet) {
    timing_.pipeline_ranks.resize(schedule.lists.size());
  }

  absl::StatusOr<ScheduleTiming> Run();

 private:
  size_t Slot(int64_t stage, int64_t micro_batch) const {
    return static_cast<size_t>(stage * schedule_.micro_batches + micro_batch);
  }
  int64_t Cost(const ScheduleAction& action) const;
  // When the end of an action at `stage` is known at `at_stage`, kNotYet if it has not ended.
  int64_t Arrival(int64_t end, int64_t stage, int64_t at_stage) const;
  // When the inputs of an action are there, kNotYet while that is unknown.
  int64_t Ready(const ScheduleAction& action) const;
  // Runs a rank up to its first action without inputs; false if it could not move.
  bool Advance(size_t rank);
  absl::Status Stuck() const;

  const PipelineSchedule& schedule_;
  const ScheduleCosts& costs_;
  const int64_t stages_;
  std::vector<size_t> next_;           // per rank, the action to run
  std::vector<int64_t> free_at_;       // per rank
  std::vector<int64_t> forward_end_;   // per stage and micro-batch
  std::vector<int64_t> gradient_end_;  // of B or I
  ScheduleTiming timing_;
};

int64_t Simulation::Cost(const ScheduleAction& action) const {
  const StageCost& cost = costs_.stages[static_cast<size_t>(action.stage)];
  switch (action.kind) {
    case ScheduleActionKind::kForward:
      return cost.forward;
    case ScheduleActionKind::kBackward:
      return cost.input_gradient + cost.weight_gradient;
    case ScheduleActionKind::kInputGradient:
      return cost.input_gradient;
    case ScheduleActionKind::kWeightGradient:
      return cost.weight_gradient;
  }
  return 0;
}

int64_t Simulation::Arrival(int64_t end, int64_t stage, int64_t at_stage) const {
  if (end == kNotYet) return kNotYet;
  return stage % schedule_.pp == at_stage % schedule_.pp ? end : end + costs_.transfer;
}

int64_t Simulation::Ready(const ScheduleAction& action) const {
  const int64_t stage = action.stage;
  const int64_t own_forward = forward_end_[Slot(stage, action.micro_batch)];
  switch (action.kind) {
    case ScheduleActionKind::kForward:
      if (stage == 0) return 0;
      return Arrival(forward_end_[Slot(stage - 1, action.micro_batch)], stage - 1, stage);
    case ScheduleActionKind::kBackward:
    case ScheduleActionKind::kInputGradient: {
      if (stage == stages_ - 1 || own_forward == kNotYet) return own_forward;
      const int64_t gradient =
          Arrival(gradient_end_[Slot(stage + 1, action.micro_batch)], stage + 1, stage);
      return gradient == kNotYet ? kNotYet : std::max(own_forward, gradient);
    }
    case ScheduleActionKind::kWeightGradient:
      return gradient_end_[Slot(stage, action.micro_batch)];
  }
  return kNotYet;
}

bool Simulation::Advance(size_t rank) {
  const std::vector<ScheduleAction>& actions = schedule_.lists[rank];
  const size_t before = next_[rank];
  for (; next_[rank] < actions.size(); ++next_[rank]) {
    const ScheduleAction& action = actions[next_[rank]];
    const int64_t ready = Ready(action);
    if (ready == kNotYet) break;
    const int64_t start = std::max(ready, free_at_[rank]);
    const int64_t end = start + Cost(action);
    timing_.pipeline_ranks[rank].starts.push_back(start);
    timing_.pipeline_ranks[rank].busy += end - start;
    free_at_[rank] = end;
    if (action.kind == ScheduleActionKind::kForward) {
      forward_end_[Slot(action.stage, action.micro_batch)] = end;
    } else if (action.kind != ScheduleActionKind::kWeightGradient) {
      gradient_end_[Slot(action.stage, action.micro_batch)] = end;
    }
  }
  return next_[rank] != before;
}

absl::Status Simulation::Stuck() const {
  std::vector<std::string> waiting;
  for (size_t rank = 0; rank < next_.size(); ++rank) {
    if (next_[rank] == schedule_.lists[rank].size()) continue;
    waiting.push_back(absl::StrCat("rank ", rank, " at ",
                                   ToString(schedule_.lists[rank][next_[rank]]), " (action ",
                                   next_[rank], ")"));
  }
  constexpr size_t kShown = 8;
  const size_t hidden = waiting.size() - std::min(waiting.size(), kShown);
  waiting.resize(waiting.size() - hidden);
  return absl::FailedPreconditionError(
      absl::StrCat("schedule deadlocks; waiting: ", absl::StrJoin(waiting, ", "),
                   hidden > 0 ? absl::StrCat(" and ", hidden, " more") : ""));
}

absl::StatusOr<ScheduleTiming> Simulation::Run() {
  const size_t ranks = schedule_.lists.size();
  std::deque<size_t> wake;
  for (size_t rank = 0; rank < ranks; ++rank) wake.push_back(rank);
  while (!wake.empty()) {
    const size_t rank = wake.front();
    wake.pop_front();
    if (!Advance(rank)) continue;
    // Only neighbours wait for this rank: stages of consecutive numbers lie on neighbouring ranks.
    wake.push_back(rank + 1 < ranks ? rank + 1 : 0);
    wake.push_back((rank > 0 ? rank : ranks) - 1);
  }
  for (size_t rank = 0; rank < ranks; ++rank) {
    if (next_[rank] < schedule_.lists[rank].size()) return Stuck();
    timing_.makespan = std::max(timing_.makespan, free_at_[rank]);
  }
  for (PipelineRankTiming& rank : timing_.pipeline_ranks)
    rank.bubble = timing_.makespan - rank.busy;
  return std::move(timing_);
}

absl::Status CheckCosts(const PipelineSchedule& schedule, const ScheduleCosts& costs) {
  if (static_cast<int64_t>(costs.stages.size()) != schedule.pp * schedule.vp) {
    return absl::InvalidArgumentError(absl::StrCat("schedule of ", schedule.pp * schedule.vp,
                                                   " stages has costs of ", costs.stages.size()));
  }
  for (const StageCost& cost : costs.stages) {
    if (std::min({cost.forward, cost.input_gradient, cost.weight_gradient, costs.transfer}) < 0) {
      return absl::InvalidArgumentError("schedule costs must not be negative");
    }
  }
  return absl::OkStatus();
}

// Which kinds of action a (stage, micro-batch) has been given, as bits by kind.
class ActionCounter {
 public:
  explicit ActionCounter(const PipelineSchedule& schedule)
      : schedule_(schedule),
        seen_(static_cast<size_t>(schedule.pp * schedule.vp * schedule.micro_batches), 0) {}

  absl::Status Add(size_t rank, const ScheduleAction& action) {
    if (action.stage < 0 || action.stage >= schedule_.pp * schedule_.vp ||
        action.stage % schedule_.pp != static_cast<int64_t>(rank) || action.micro_batch < 0 ||
        action.micro_batch >= schedule_.micro_batches) {
      return Wrong(rank, action, "does not belong there");
    }
    uint8_t& seen =
        seen_[static_cast<size_t>(action.stage * schedule_.micro_batches + action.micro_batch)];
    const uint8_t bit = Bit(action.kind);
    const uint8_t whole = Bit(ScheduleActionKind::kBackward);
    const uint8_t split =
        Bit(ScheduleActionKind::kInputGradient) | Bit(ScheduleActionKind::kWeightGradient);
    if ((seen & bit) != 0 || (bit == whole && (seen & split) != 0) ||
        ((bit & split) != 0 && (seen & whole) != 0)) {
      return Wrong(rank, action, "is done twice");
    }
    seen |= bit;
    return absl::OkStatus();
  }

  absl::Status CheckComplete() const {
    const uint8_t whole = Bit(ScheduleActionKind::kForward) | Bit(ScheduleActionKind::kBackward);
    const uint8_t split = Bit(ScheduleActionKind::kForward) |
                          Bit(ScheduleActionKind::kInputGradient) |
                          Bit(ScheduleActionKind::kWeightGradient);
    for (size_t i = 0; i < seen_.size(); ++i) {
      if (seen_[i] == whole || seen_[i] == split) continue;
      return absl::InvalidArgumentError(absl::StrCat("schedule lacks an action of stage ",
                                                     i / schedule_.micro_batches, ", micro-batch ",
                                                     i % schedule_.micro_batches));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr uint8_t Bit(ScheduleActionKind kind) {
    return static_cast<uint8_t>(1u << static_cast<int>(kind));
  }
  static absl::Status Wrong(size_t rank, const ScheduleAction& action, const char* what) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule of rank ", rank, ": ", ToString(action), " ", what));
  }

  const PipelineSchedule& schedule_;
  std::vector<uint8_t> seen_;
};

absl::Status CheckActions(const PipelineSchedule& schedule) {
  const int64_t stages = SaturatingMultiply(schedule.pp, schedule.vp);
  if (schedule.pp < 1 || schedule.vp < 1 || schedule.micro_batches < 1 ||
      static_cast<int64_t>(schedule.lists.size()) != schedule.pp ||
      SaturatingMultiply(stages, schedule.micro_batches) > kMaxScheduleActions) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule of pp ", schedule.pp, ", vp ", schedule.vp, ", ", schedule.micro_batches,
        " micro-batches has ", schedule.lists.size(), " ranks"));
  }
  ActionCounter counter(schedule);
  for (size_t rank = 0; rank < schedule.lists.size(); ++rank) {
    for (const ScheduleAction& action : schedule.lists[rank]) {
      MGC_RETURN_IF_ERROR(counter.Add(rank, action));
    }
  }
  return counter.CheckComplete();
}

// An activation lives from its F to its B or W, in the order of the list whatever the times.
int64_t PeakActivations(const std::vector<ScheduleAction>& actions) {
  int64_t live = 0;
  int64_t peak = 0;
  for (const ScheduleAction& action : actions) {
    if (action.kind == ScheduleActionKind::kForward) {
      peak = std::max(peak, ++live);
    } else if (action.kind != ScheduleActionKind::kInputGradient) {
      --live;
    }
  }
  return peak;
}

}  // namespace

absl::StatusOr<ScheduleTiming> SimulateSchedule(const PipelineSchedule& schedule,
                                                const ScheduleCosts& costs) {
  MGC_RETURN_IF_ERROR(CheckActions(schedule));
  MGC_RETURN_IF_ERROR(CheckCosts(schedule, costs));
  MGC_ASSIGN_OR_RETURN(ScheduleTiming timing, Simulation(schedule, costs).Run());
  for (size_t rank = 0; rank < schedule.lists.size(); ++rank) {
    timing.pipeline_ranks[rank].peak_activations = PeakActivations(schedule.lists[rank]);
  }
  return timing;
}

}  // namespace mgc
