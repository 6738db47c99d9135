#include "passes/search/plans/bound_plan.h"

#include <algorithm>
#include <cmath>

#include "graph/plan/instr_collective.h"
#include "passes/plan/time/cost.h"
#include "passes/search/plans/plan_spread.h"

namespace mgc {
namespace {

int64_t ShareOf(int64_t total, int64_t parts) { return total / std::max<int64_t>(parts, 1); }

class TimeBounder {
 public:
  // Both outlive it.
  TimeBounder(const PlanSpread& spread, const Machine& machine)
      : spread_(spread),
        config_(spread.config),
        checked_(spread.checked),
        machine_(machine),
        stages_(spread.parts->stages),
        ranks_(spread.parts->ranks) {}

  PlanBound Run() {
    BoundTime();
    return bound_;
  }

 private:
  void BoundTime() {
    const int64_t ends[] = {0, spread_.pp_stride};
    boundary_ns_ = TransferNs(machine_.TierOf(ends), spread_.profile.stream_bytes);
    for (const LayerProfile& stage : stages_) micro_batch_ns_.push_back(MicroBatchNs(stage));
    int64_t way = 0;  // of the first micro-batch's forward to a rank and the last backward from it
    for (size_t c = 0; c < ranks_.size(); ++c) {
      const int64_t busy = Times(checked_.micro_batches, MicroBatchNs(ranks_[c]));
      if (Later(way, busy) > bound_.pipeline_ns) {
        bound_.pipeline_ns = Later(way, busy);
        bound_.bubble_ns = way;
      }
      way = Later(way, micro_batch_ns_[c] + 2 * boundary_ns_);
    }
    BoundByFirst();
    bound_.reduction_ns = Reductions();
    bound_.update_ns = ShareOf(ranks_.front().update_ns, spread_.shares);
    bound_.step_ns = Later(Later(bound_.pipeline_ns, bound_.reduction_ns), bound_.update_ns);
    if (machine_.cores > 0) bound_.step_ns = WorkOnCores();
  }

  // A micro-batch goes through all stages and back; the last stage has the others behind it.
  void BoundByFirst() {
    const int64_t last = micro_batch_ns_.back();
    int64_t through = 0;
    for (const int64_t ns : micro_batch_ns_) through = Later(through, ns);
    const auto boundaries = static_cast<int64_t>(stages_.size()) - 1;
    through = Later(through, 2 * boundaries * boundary_ns_);
    through = Later(through, Times(checked_.micro_batches, last) - last);
    if (through <= bound_.pipeline_ns) return;
    bound_.bubble_ns += through - bound_.pipeline_ns;
    bound_.pipeline_ns = through;
  }

  // Forward and backward of one, each at least as long as its communication.
  int64_t MicroBatchNs(const LayerProfile& of) const {
    int64_t forward = of.forward_queue_ns;
    int64_t backward = of.backward_queue_ns;
    const auto add = [&](CollectiveKind kind, int64_t bytes, int64_t* queue) {
      *queue = Later(*queue, ReductionNs(kind, bytes, spread_.near));
      *queue = Later(*queue, HopsNs(kind, of.trained));
    };
    if (config_.zero >= 2) add(CollectiveKind::kReduceScatter, of.grad_bytes, &backward);
    if (spread_.GathersInTurn()) {
      for (int64_t* queue : {&forward, &backward}) {
        add(CollectiveKind::kAllGather, PlanSpread::CopyBytes(of), queue);
      }
    }
    return Later(std::max(of.forward_ns, forward), std::max(of.backward_ns, backward));
  }

  // As many of the ranks that share a parameter's pieces as a machine can have.
  int64_t MostInMachine(int64_t ranks) const {
    const int64_t stride = config_.cp > 1 ? config_.tp : spread_.dp_stride;
    const int64_t most = (machine_.tiers.front().ranks + stride - 1) / stride;
    return std::clamp<int64_t>(most, 1, ranks);
  }

  // The hops of `count` collectives that follow each other, each of one layer. The first hop of
  // each is part of its latency (passes/plan/time/ring_time.h).
  int64_t HopsNs(CollectiveKind kind, int64_t count) const {
    const int64_t ranks = spread_.near * config_.cp;
    if (ranks <= 1) return 0;
    const int64_t most = MostInMachine(ranks);
    const int64_t between = (ranks + most - 1) / most - 1;  // steps that leave a machine
    const double within = machine_.tiers.front().hop;
    double outside = machine_.tiers.back().hop;
    for (size_t t = 1; t < machine_.tiers.size(); ++t) {
      outside = std::min(outside, machine_.tiers[t].hop);
    }
    const double round = std::min(within, outside) * static_cast<double>(ranks - 1 - between) +
                         outside * static_cast<double>(between);
    const double longest = std::max(within, outside);
    const double one = std::max(round * static_cast<double>(RingRounds(kind)) - longest, 0.0);
    return static_cast<int64_t>(
        std::min(1e9 * one * static_cast<double>(count), static_cast<double>(kMaxNs)));
  }

  // A sum or gather over cp and `data` ranks of dp.
  int64_t ReductionNs(CollectiveKind kind, int64_t bytes, int64_t data) const {
    const int64_t ranks = data * config_.cp;
    if (ranks <= 1 || bytes == 0) return 0;
    const int64_t ends[] = {0, (data - 1) * spread_.dp_stride + (config_.cp - 1) * config_.tp};
    const NetworkTier& tier = machine_.TierOf(ends);
    const int64_t ports = &tier == &machine_.tiers.front() ? 1 : MostInMachine(ranks);
    return TransferNs(tier, RingWireBytes(kind, bytes, ranks) / ports);
  }

  // Of the first rank, whose backward ends last: gradients are whole when its last backward runs,
  // and the first forward waits for gathered parameters.
  int64_t Reductions() const {
    if (checked_.dp * config_.cp <= 1 || config_.zero >= 2) return 0;
    const LayerProfile& rank = ranks_.front();
    const LayerProfile& stage = stages_.front();
    const int64_t grads = spread_.SummedBytes(rank);
    if (config_.zero == 0) {
      const int64_t sums = ReductionNs(CollectiveKind::kAllReduce, grads, checked_.dp);
      return std::max<int64_t>(0, sums - rank.backward_ns);
    }
    const int64_t scatter = ReductionNs(CollectiveKind::kReduceScatter, grads, spread_.near);
    const int64_t copies = PlanSpread::CopyBytes(rank);
    const int64_t gather = ReductionNs(CollectiveKind::kAllGather, copies, spread_.near);
    return std::max<int64_t>(0, scatter - rank.backward_ns) +
           std::max<int64_t>(0, gather - stage.forward_ns);
  }

  // Ranks share cores: the work of all, spread evenly.
  int64_t WorkOnCores() const {
    double work = 0;
    for (const LayerProfile& rank : ranks_) {
      work += static_cast<double>(
                  Times(checked_.micro_batches,
                        rank.compute_ns + rank.forward_queue_ns + rank.backward_queue_ns)) +
              static_cast<double>(ShareOf(rank.update_ns, spread_.shares));
    }
    const int64_t ranks = config_.world_size / config_.pp;  // of a pipeline rank
    work *= static_cast<double>(ranks);
    return static_cast<int64_t>(
        std::min(work / static_cast<double>(machine_.cores), static_cast<double>(kMaxNs)));
  }

  const PlanSpread& spread_;
  const ParallelConfig& config_;
  const CheckedConfig& checked_;
  const Machine& machine_;
  const std::vector<LayerProfile>& stages_;
  const std::vector<LayerProfile>& ranks_;
  std::vector<int64_t> micro_batch_ns_;  // by stage
  int64_t boundary_ns_ = 0;
  PlanBound bound_;
};

class MemoryBounder {
 public:
  // Outlives it.
  explicit MemoryBounder(const PlanSpread& spread)
      : spread_(spread),
        config_(spread.config),
        checked_(spread.checked),
        profile_(spread.profile),
        stages_(spread.parts->stages),
        ranks_(spread.parts->ranks) {}

  void Run(PlanBound* bound) const {
    for (size_t c = 0; c < ranks_.size(); ++c) {
      const LayerProfile& rank = ranks_[c];
      int64_t bytes = spread_.BlockBytes(rank) + InTurns(c);
      bound->held_bytes = std::max(bound->held_bytes, bytes);
      bytes += InFlight(c);
      // A forward's input is kept as long as its frame.
      if (c > 0) bytes += spread_.Begun(c) * profile_.stream_bytes;
      bytes += 2 * profile_.stream_bytes + rank.transient_bytes + rank.workspace_bytes;
      bound->peak_bytes = std::max(bound->peak_bytes, bytes);
    }
  }

 private:
  // What layers take in turn: sums on their way into pieces, copies that are gathered.
  int64_t InTurns(size_t c) const {
    int64_t bytes = 0;
    if (config_.zero >= 2) bytes += InTurns(c, &LayerProfile::grad_bytes);
    if (!spread_.GathersInTurn()) return bytes;
    const bool has_type = ranks_[c].copy_bytes > 0;
    return bytes + InTurns(c, has_type ? &LayerProfile::copy_bytes : &LayerProfile::param_bytes);
  }

  // Neighbouring layers take two places in turn.
  int64_t InTurns(size_t c, int64_t LayerProfile::*bytes) const {
    if (profile_.layers.size() == 1) return 0;
    int64_t most[] = {0, 0};
    const int64_t first = profile_.has_embedding ? 1 : 0;
    for (size_t s = c; s < stages_.size(); s += ranks_.size()) {
      const StageContent& content = checked_.placement.stages[s];
      for (int64_t i = 0; i < content.num_layers; ++i) {
        const auto layer = static_cast<size_t>(first + content.first_layer + i);
        if (layer >= profile_.layers.size()) break;
        int64_t& turn = most[(content.first_layer + i) & 1];
        turn = std::max(turn, profile_.layers[layer].*bytes);
      }
    }
    return most[0] + most[1];
  }

  // A frame ends with the stream behind the last layer but one: what a stage hands to the next one
  // lies elsewhere.
  int64_t FrameOf(size_t s) const {
    const bool ends_model = s + 1 == stages_.size();
    const int64_t handed = ends_model ? 0 : profile_.stream_bytes;
    return std::max<int64_t>(0, stages_[s].frame_bytes - handed);
  }

  // The frames of what has begun, at least.
  int64_t InFlight(size_t c) const {
    int64_t least = FrameOf(c);
    int64_t all = 0;
    for (size_t s = c; s < stages_.size(); s += ranks_.size()) {
      least = std::min(least, FrameOf(s));
      all += FrameOf(s);
    }
    const int64_t begun = spread_.Begun(c);
    return config_.schedule == ScheduleKind::kInterleaved ? begun * least
                                                          : begun / checked_.vp * all;
  }

  const PlanSpread& spread_;
  const ParallelConfig& config_;
  const CheckedConfig& checked_;
  const ModelProfile& profile_;
  const std::vector<LayerProfile>& stages_;
  const std::vector<LayerProfile>& ranks_;
};

}  // namespace

PlanBound BoundPlan(const PlanSpread& spread, const Machine& machine) {
  PlanBound bound = TimeBounder(spread, machine).Run();
  MemoryBounder(spread).Run(&bound);
  return bound;
}

int64_t LeastOverCutsNs(const PlanSpread& spread, const Machine& machine) {
  if (machine.cores > 0) return BoundPlan(spread, machine).step_ns;
  double work = 0;
  for (const LayerProfile& stage : spread.parts->stages) {
    work += static_cast<double>(stage.forward_ns) + static_cast<double>(stage.backward_ns);
  }
  const double others = 1.0 - 1.0 / static_cast<double>(spread.checked.micro_batches);
  const double ns = work / (1.0 - std::pow(others, static_cast<double>(spread.config.pp)));
  return static_cast<int64_t>(std::min(ns, static_cast<double>(kMaxNs)));
}

}  // namespace mgc
