#include "passes/search/plans/estimate_step.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "passes/plan/time/cost.h"
#include "passes/plan/time/ring_time.h"

namespace mgc {
namespace {

// That are kept; one may have a million actions.
constexpr size_t kMostSchedules = 8;

int64_t ToNs(double seconds) {
  return static_cast<int64_t>(std::min(seconds * 1e9, static_cast<double>(kMaxNs)));
}

// Collectives over the ranks that hold the same part of the model.
class DataCollectives {
 public:
  DataCollectives(const PlanSpread& spread, const Machine& machine)
      : machine_(machine),
        near_(RanksOf(spread, spread.near, spread.dp_stride, spread.config.cp)),
        far_(RanksOf(spread, spread.checked.dp / spread.near, spread.near * spread.dp_stride, 1)) {}

  int64_t AllReduceNs(int64_t bytes) { return Ns(near_, CollectiveKind::kAllReduce, bytes); }
  int64_t GatherNs(int64_t bytes) { return Ns(near_, CollectiveKind::kAllGather, bytes); }
  int64_t ScatterNs(int64_t bytes) { return Ns(near_, CollectiveKind::kReduceScatter, bytes); }
  // Sums over groups that hold copies, of what each rank has in pieces.
  int64_t BetweenGroupsNs(int64_t bytes) {
    return Ns(far_, CollectiveKind::kAllReduce, bytes / static_cast<int64_t>(near_.size()));
  }

 private:
  static std::vector<int64_t> RanksOf(const PlanSpread& spread, int64_t count, int64_t stride,
                                      int64_t cp) {
    std::vector<int64_t> ranks;
    ranks.reserve(static_cast<size_t>(count * cp));
    for (int64_t d = 0; d < count; ++d) {
      for (int64_t c = 0; c < cp; ++c) ranks.push_back(d * stride + c * spread.config.tp);
    }
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  }

  // Layers are mostly alike.
  int64_t Ns(const std::vector<int64_t>& ranks, CollectiveKind kind, int64_t bytes) {
    if (ranks.size() <= 1 || bytes == 0) return 0;
    const auto [known, is_new] = known_.try_emplace({ranks.size(), kind, bytes}, 0);
    if (is_new) known->second = ToNs(CollectiveSeconds(machine_, ranks, kind, bytes));
    return known->second;
  }

  const Machine& machine_;
  const std::vector<int64_t> near_;
  const std::vector<int64_t> far_;
  std::map<std::tuple<size_t, CollectiveKind, int64_t>, int64_t> known_;
};

class StepEstimator {
 public:
  StepEstimator(const PlanSpread& spread, const Machine& machine)
      : spread_(spread),
        config_(spread.config),
        data_(spread, machine),
        ranks_(spread.parts->ranks.size()) {
    const int64_t ends[] = {0, spread.pp_stride};
    boundary_ns_ = TransferNs(machine.TierOf(ends), spread.profile.stream_bytes);
    for (size_t s = 0; s < spread.parts->stages.size(); ++s) stages_.push_back(TimeStage(s));
  }

  int64_t Run(const PipelineSchedule& schedule) {
    GatherAhead();
    RunSchedule(schedule);
    int64_t end = 0;
    for (const RankClock& rank : ranks_) end = std::max({end, rank.now, rank.queue_free});
    int64_t update = 0;
    for (const LayerProfile& rank : spread_.parts->ranks) {
      update = std::max(update, rank.update_ns / std::max<int64_t>(spread_.shares, 1));
    }
    return Later(end, update);
  }

 private:
  struct LayerTimes {
    int64_t forward_ns = 0;
    int64_t backward_ns = 0;
    int64_t forward_queue_ns = 0;
    int64_t backward_queue_ns = 0;
    int64_t gather_ns = 0;
    int64_t sum_ns = 0;  // behind the last backward
  };
  struct StageTimes {
    std::vector<LayerTimes> layers;  // in the order of forward, embedding and head among them
    int64_t forward_ns = 0;
    int64_t backward_ns = 0;
    int64_t first_copy_ns = 0;  // when its first copy is asked for
  };
  struct RankClock {
    size_t next = 0;         // action
    int64_t now = 0;         // of the compute queue
    int64_t queue_free = 0;  // of what runs in the background
  };

  std::vector<const LayerProfile*> LayersOf(size_t s) const {
    const ModelProfile& profile = spread_.profile;
    if (profile.layers.size() == 1) return {&spread_.parts->stages[s]};
    std::vector<const LayerProfile*> layers;
    for (const size_t l : spread_.LayersOf(s)) layers.push_back(&profile.layers[l]);
    return layers;
  }

  StageTimes TimeStage(size_t s) {
    StageTimes times;
    for (const LayerProfile* layer : LayersOf(s)) times.layers.push_back(TimeLayer(*layer));
    const std::vector<LayerTimes>& layers = times.layers;
    if (spread_.GathersInTurn() && !layers.empty()) {
      times.forward_ns = layers.front().gather_ns;
      times.backward_ns = layers.back().gather_ns;
    }
    for (size_t i = 0; i < layers.size(); ++i) {
      const LayerTimes& layer = layers[i];
      int64_t forward = layer.forward_queue_ns;
      int64_t backward = layer.backward_queue_ns;
      // A layer's own gather runs beside the one before it, its sum beside the one behind it.
      if (spread_.GathersInTurn()) {
        if (i + 1 < layers.size()) forward += layers[i + 1].gather_ns;
        if (i > 0) backward += layers[i - 1].gather_ns;
      }
      if (config_.zero >= 2) backward += layer.sum_ns;
      times.forward_ns = Later(times.forward_ns, std::max(layer.forward_ns, forward));
      times.backward_ns = Later(times.backward_ns, std::max(layer.backward_ns, backward));
    }
    return times;
  }
  LayerTimes TimeLayer(const LayerProfile& layer) {
    LayerTimes times{layer.forward_ns, layer.backward_ns, layer.forward_queue_ns,
                     layer.backward_queue_ns};
    const int64_t summed = spread_.SummedBytes(layer);
    if (config_.zero > 0) times.gather_ns = data_.GatherNs(PlanSpread::CopyBytes(layer));
    times.sum_ns = config_.zero == 0 ? data_.AllReduceNs(summed) : data_.ScatterNs(summed);
    if (config_.zero == 1) times.sum_ns = Later(times.sum_ns, data_.BetweenGroupsNs(summed));
    return times;
  }

  // Copies for the whole step are asked for before its first forward.
  void GatherAhead() {
    if (config_.zero == 0 || spread_.GathersInTurn()) return;
    for (size_t s = 0; s < stages_.size(); ++s) {
      RankClock& rank = ranks_[RankOf(s)];
      stages_[s].first_copy_ns = rank.queue_free;
      for (const LayerTimes& layer : stages_[s].layers) {
        rank.queue_free = Later(rank.queue_free, layer.gather_ns);
      }
    }
  }
  size_t RankOf(size_t s) const {
    return static_cast<size_t>(spread_.checked.placement.places[s].rank_class);
  }

  // The first forward waits for copies layer by layer.
  int64_t FirstForwardEnd(const StageTimes& stage, int64_t begin) const {
    if (config_.zero == 0 || spread_.GathersInTurn()) return Later(begin, stage.forward_ns);
    int64_t copies = stage.first_copy_ns;
    int64_t now = begin;
    for (const LayerTimes& layer : stage.layers) {
      copies = Later(copies, layer.gather_ns);
      if (copies > now) copies = Later(copies, layer.forward_queue_ns);
      now = Later(std::max(now, copies), layer.forward_ns);
    }
    return now;
  }

  // The last backward sums gradients layer by layer, behind and beside the layers' own collectives.
  int64_t LastBackwardEnd(const StageTimes& stage, int64_t begin, RankClock* rank) const {
    if (config_.zero >= 2) return Later(begin, stage.backward_ns);
    int64_t now = begin;
    for (auto layer = stage.layers.rbegin(); layer != stage.layers.rend(); ++layer) {
      if (rank->queue_free > now) {
        rank->queue_free = Later(rank->queue_free, layer->backward_queue_ns);
      }
      now = Later(now, layer->backward_ns);
      rank->queue_free = Later(std::max(rank->queue_free, now), layer->sum_ns);
    }
    return now;
  }

  // Every rank goes on until an action needs one that has not ended.
  void RunSchedule(const PipelineSchedule& schedule) {
    micro_batches_ = static_cast<size_t>(schedule.micro_batches);
    forward_ends_.assign(stages_.size() * micro_batches_, -1);
    backward_ends_.assign(stages_.size() * micro_batches_, -1);
    std::vector<size_t> awake;
    for (size_t r = schedule.lists.size(); r-- > 0;) awake.push_back(r);
    while (!awake.empty()) {
      const size_t r = awake.back();
      awake.pop_back();
      const std::vector<ScheduleAction>& list = schedule.lists[r];
      for (size_t& next = ranks_[r].next; next < list.size() && RunAction(list[next]); ++next) {
        const int64_t woken = NextStage(list[next]);
        if (woken >= 0) awake.push_back(RankOf(static_cast<size_t>(woken)));
      }
    }
  }

  // The stage that what an action makes goes to; -1: none.
  int64_t NextStage(const ScheduleAction& action) const {
    if (action.kind != ScheduleActionKind::kForward) return action.stage - 1;
    return action.stage + 1 < static_cast<int64_t>(stages_.size()) ? action.stage + 1 : -1;
  }

  // False where it has to wait for another rank.
  bool RunAction(const ScheduleAction& action) {
    const auto s = static_cast<size_t>(action.stage);
    const auto m = static_cast<size_t>(action.micro_batch);
    const bool forward = action.kind == ScheduleActionKind::kForward;
    std::vector<int64_t>& ends = forward ? forward_ends_ : backward_ends_;
    RankClock& rank = ranks_[RankOf(s)];
    int64_t begin = rank.now;
    if (forward ? s > 0 : s + 1 < stages_.size()) {
      const int64_t needed = ends[(forward ? s - 1 : s + 1) * micro_batches_ + m];
      if (needed < 0) return false;
      begin = std::max(begin, Later(needed, boundary_ns_));
    }
    if (forward) {
      rank.now = m == 0 ? FirstForwardEnd(stages_[s], begin) : Later(begin, stages_[s].forward_ns);
    } else {
      rank.now = m + 1 == micro_batches_ ? LastBackwardEnd(stages_[s], begin, &rank)
                                         : Later(begin, stages_[s].backward_ns);
    }
    ends[s * micro_batches_ + m] = rank.now;
    return true;
  }

  const PlanSpread& spread_;
  const ParallelConfig& config_;
  DataCollectives data_;
  int64_t boundary_ns_ = 0;
  std::vector<StageTimes> stages_;
  std::vector<RankClock> ranks_;
  size_t micro_batches_ = 0;
  // By stage and micro-batch; -1: it has not ended.
  std::vector<int64_t> forward_ends_;
  std::vector<int64_t> backward_ends_;
};

// Ranks share cores: the work of all, spread evenly.
int64_t WorkOnCores(const PlanSpread& spread, const Machine& machine) {
  DataCollectives data(spread, machine);
  double work = 0;
  for (const LayerProfile& rank : spread.parts->ranks) {
    const int64_t micro_batch = rank.compute_ns + rank.forward_queue_ns + rank.backward_queue_ns;
    work += static_cast<double>(micro_batch) * static_cast<double>(spread.checked.micro_batches);
    work += static_cast<double>(rank.update_ns) / static_cast<double>(spread.shares);
    const int64_t sums = spread.SummedBytes(rank);
    const int64_t copies = PlanSpread::CopyBytes(rank);
    work +=
        static_cast<double>(spread.config.zero == 0 ? data.AllReduceNs(sums)
                                                    : data.ScatterNs(sums) + data.GatherNs(copies));
  }
  const int64_t ranks_of_stage = spread.config.world_size / spread.config.pp;
  const auto ranks = static_cast<double>(ranks_of_stage);
  return ToNs(work * ranks / static_cast<double>(machine.cores) / 1e9);
}

}  // namespace

const PipelineSchedule& ScheduleCache::Of(const ParallelConfig& config,
                                          const CheckedConfig& checked) {
  const ScheduleSpec spec = {config.schedule, config.pp, checked.vp, checked.micro_batches,
                             config.group_size};
  const auto sizes = [](const ScheduleSpec& of) {
    return std::make_tuple(of.kind, of.pp, of.vp, of.micro_batches, of.group_size);
  };
  const auto known = std::find_if(built_.begin(), built_.end(), [&](const Built& built) {
    return sizes(built.spec) == sizes(spec);
  });
  if (known == built_.end()) {
    absl::StatusOr<PipelineSchedule> schedule = BuildSchedule(spec);
    MGC_CHECK(schedule.ok()) << schedule.status().message();  // CheckConfig has passed it
    built_.push_front({spec, *std::move(schedule)});
  } else {
    built_.splice(built_.begin(), built_, known);
  }
  if (built_.size() > kMostSchedules) built_.pop_back();
  return built_.front().schedule;
}

int64_t EstimateStepNs(const PlanSpread& spread, const Machine& machine, ScheduleCache* schedules) {
  if (machine.cores > 0) return WorkOnCores(spread, machine);
  return StepEstimator(spread, machine).Run(schedules->Of(spread.config, spread.checked));
}

}  // namespace mgc
