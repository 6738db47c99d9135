#include "passes/search/plans/pool_bound.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "passes/plan/time/simulate_step.h"

namespace mgc {
namespace {

bool IsForward(const ScheduleAction& action) { return action.kind == ScheduleActionKind::kForward; }

// Of the ranks of one schedule. A position is an action's in the list of its rank.
class PoolBounder {
 public:
  // Both outlive it.
  PoolBounder(const PipelineSchedule& schedule, const std::vector<StagePlace>& places)
      : schedule_(schedule), places_(places), micro_batches_(schedule.micro_batches) {
    for (std::vector<int64_t>& of_kind : position_) {
      of_kind.assign(places.size() * static_cast<size_t>(micro_batches_), 0);
    }
    for (const std::vector<ScheduleAction>& list : schedule.lists) {
      for (size_t i = 0; i < list.size(); ++i) {
        PositionOf(IsForward(list[i]), list[i].stage, list[i].micro_batch) =
            static_cast<int64_t>(i);
      }
    }
  }

  PoolBound Run(size_t rank) {
    const std::vector<ScheduleAction>& list = schedule_.lists[rank];
    inputs_ = 0;
    reached_.assign(schedule_.lists.size(), -1);
    sent_.clear();
    PoolBound bound;
    for (size_t i = 0; i < list.size(); ++i) {
      // While an action runs, the input of the next one may arrive.
      const int64_t next = i + 1 < list.size() && Takes(list[i + 1]) ? 1 : 0;
      const int64_t own = Takes(list[i]) && !IsForward(list[i]) ? 1 : 0;
      if (IsForward(list[i]) && Takes(list[i])) ++inputs_;
      const int64_t kept = inputs_ + own;
      bound.least = std::max(bound.least, kept + (Leaves(list[i]) ? 1 : 0));
      bound.most = std::max(bound.most, kept + next + Outboxes(list[i]));
      if (!IsForward(list[i]) && list[i].stage > 0) --inputs_;
    }
    return bound;
  }

 private:
  // Of what a rank has sent, what the receiver may not have by now.
  struct Sent {
    size_t to = 0;
    int64_t consumer = 0;
  };

  int64_t& PositionOf(bool forward, int64_t stage, int64_t micro_batch) {
    return position_[forward ? 0 : 1][static_cast<size_t>(stage * micro_batches_ + micro_batch)];
  }
  int64_t NumStages() const { return static_cast<int64_t>(places_.size()); }
  size_t RankOf(int64_t stage) const {
    return static_cast<size_t>(places_[static_cast<size_t>(stage)].rank_class);
  }
  bool Takes(const ScheduleAction& action) const {
    return IsForward(action) ? action.stage > 0 : action.stage + 1 < NumStages();
  }
  bool Leaves(const ScheduleAction& action) const {
    return IsForward(action) ? action.stage + 1 < NumStages() : action.stage > 0;
  }

  // When an action begins, whatever its micro-batch has been through has ended there.
  void Reach(const ScheduleAction& action) {
    const auto reach = [&](bool forward, int64_t stage) {
      int64_t& reached = reached_[RankOf(stage)];
      reached = std::max(reached, PositionOf(forward, stage, action.micro_batch));
    };
    const int64_t forwards = IsForward(action) ? action.stage : NumStages();
    for (int64_t s = 0; s < forwards; ++s) reach(true, s);
    for (int64_t s = action.stage + 1; !IsForward(action) && s < NumStages(); ++s) reach(false, s);
  }

  // What may wait to be sent while an action runs, its own output included.
  int64_t Outboxes(const ScheduleAction& action) {
    const bool one_chunk_each = places_.size() == schedule_.lists.size();
    if (one_chunk_each) {
      // Each of its two neighbours; the last forward to one may wait while backwards run.
      const int64_t neighbours =
          (action.stage > 0 ? 1 : 0) + (action.stage + 1 < NumStages() ? 1 : 0);
      return neighbours * kMaxOutboxes;
    }
    Reach(action);
    sent_.erase(
        std::remove_if(sent_.begin(), sent_.end(),
                       [this](const Sent& sent) { return sent.consumer <= reached_[sent.to]; }),
        sent_.end());
    if (Leaves(action)) {
      const bool forward = IsForward(action);
      const int64_t to = action.stage + (forward ? 1 : -1);
      sent_.push_back({RankOf(to), PositionOf(forward, to, action.micro_batch)});
    }
    return static_cast<int64_t>(sent_.size());
  }

  const PipelineSchedule& schedule_;
  const std::vector<StagePlace>& places_;
  const int64_t micro_batches_;
  std::array<std::vector<int64_t>, 2> position_;  // forward, backward; by stage and micro-batch
  int64_t inputs_ = 0;                            // kept for a backward
  std::vector<int64_t> reached_;  // by rank, the last position that has ended for certain
  std::vector<Sent> sent_;
};

}  // namespace

std::vector<PoolBound> BoundPools(const PipelineSchedule& schedule,
                                  const std::vector<StagePlace>& places) {
  PoolBounder bounder(schedule, places);
  std::vector<PoolBound> bounds;
  for (size_t c = 0; c < schedule.lists.size(); ++c) bounds.push_back(bounder.Run(c));
  return bounds;
}

}  // namespace mgc
