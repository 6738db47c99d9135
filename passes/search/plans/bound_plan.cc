#include "passes/search/plans/bound_plan.h"

#include <algorithm>

#include "graph/plan/instr_collective.h"
#include "graph/types/mesh.h"
#include "passes/plan/time/cost.h"

namespace mgc {
namespace {

int64_t ShareOf(int64_t total, int64_t parts) { return total / std::max<int64_t>(parts, 1); }

LayerProfile EvenShare(const LayerProfile& all, int64_t parts) {
  LayerProfile share;
  share.forward_ns = ShareOf(all.forward_ns, parts);
  share.backward_ns = ShareOf(all.backward_ns, parts);
  share.compute_ns = ShareOf(all.compute_ns, parts);
  share.forward_queue_ns = ShareOf(all.forward_queue_ns, parts);
  share.backward_queue_ns = ShareOf(all.backward_queue_ns, parts);
  share.update_ns = ShareOf(all.update_ns, parts);
  share.frame_bytes = ShareOf(all.frame_bytes, parts);
  share.param_bytes = ShareOf(all.param_bytes, parts);
  share.grad_bytes = ShareOf(all.grad_bytes, parts);
  share.state_bytes = ShareOf(all.state_bytes, parts);
  share.copy_bytes = ShareOf(all.copy_bytes, parts);
  share.transient_bytes = ShareOf(all.transient_bytes, parts);
  share.workspace_bytes = ShareOf(all.workspace_bytes, parts);
  return share;
}

// Where the ranks of dp and of neighbouring stages lie apart.
struct Strides {
  int64_t dp = 1;
  int64_t pp = 1;
};

Strides StridesOf(const ParallelConfig& config, int64_t dp) {
  Strides strides;
  const absl::StatusOr<Mesh> mesh = Mesh::FromOrder(
      config.order, {{"tp", config.tp}, {"cp", config.cp}, {"dp", dp}, {"pp", config.pp}});
  if (!mesh.ok()) return strides;
  const AxisId data = mesh->FindAtomic("dp");
  const AxisId pipeline = mesh->FindAtomic("pp");
  if (data >= 0) strides.dp = mesh->stride(data);
  if (pipeline >= 0) strides.pp = mesh->stride(pipeline);
  return strides;
}

// What both bounds stand on: who holds what.
struct Spread {
  Spread(const ParallelConfig& of, const CheckedConfig& checked_of, const ModelProfile& profiled)
      : config(of),
        checked(checked_of),
        profile(profiled),
        stages(ProfilesOfStages(checked.placement, profile)),
        near(config.zero_group > 0 ? config.zero_group : checked.dp),
        shares(config.zero == 0 ? 1 : config.cp * near),
        ranks(static_cast<size_t>(config.pp)) {
    const std::vector<StagePlace>& places = checked.placement.places;
    for (size_t s = 0; s < places.size(); ++s) {
      ranks[static_cast<size_t>(places[s].rank_class)] += stages[s];
    }
  }

  const ParallelConfig& config;
  const CheckedConfig& checked;
  const ModelProfile& profile;
  const std::vector<LayerProfile> stages;
  const int64_t near;               // ranks along dp that share the pieces of a parameter
  const int64_t shares;             // and along cp
  std::vector<LayerProfile> ranks;  // by pipeline rank, all its stages
};

// Of a rank's working copies. Without types of their own they are made where masters are cut.
int64_t CopyBytes(const LayerProfile& rank) {
  return rank.copy_bytes > 0 ? rank.copy_bytes : rank.param_bytes;
}

class TimeBounder {
 public:
  // Both outlive it.
  TimeBounder(const Spread& spread, const Machine& machine)
      : spread_(spread),
        config_(spread.config),
        checked_(spread.checked),
        machine_(machine),
        stages_(spread.stages),
        ranks_(spread.ranks),
        strides_(StridesOf(spread.config, spread.checked.dp)) {}

  PlanBound Run() {
    BoundTime();
    return bound_;
  }

 private:
  void BoundTime() {
    for (const LayerProfile& stage : stages_) micro_batch_ns_.push_back(MicroBatchNs(stage));
    for (size_t c = 0; c < ranks_.size(); ++c) {
      const int64_t way = WayTo(c);
      const int64_t busy = Times(MicroBatchNs(ranks_[c]));
      if (Later(way, busy) <= bound_.pipeline_ns) continue;
      bound_.pipeline_ns = Later(way, busy);
      bound_.bubble_ns = way;
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
    through = Later(through, 2 * boundaries * Boundary());
    through = Later(through, Times(last) - last);
    if (through <= bound_.pipeline_ns) return;
    bound_.bubble_ns += through - bound_.pipeline_ns;
    bound_.pipeline_ns = through;
  }

  // Forward and backward of one, each at least as long as its communication.
  int64_t MicroBatchNs(const LayerProfile& of) const {
    int64_t forward = of.forward_queue_ns;
    int64_t backward = of.backward_queue_ns;
    if (config_.zero >= 2) {
      backward += ReductionNs(CollectiveKind::kReduceScatter, of.grad_bytes, spread_.near);
    }
    if (config_.zero == 3 && config_.reshard_after_forward) {
      const int64_t gather = ReductionNs(CollectiveKind::kAllGather, CopyBytes(of), spread_.near);
      forward += gather;
      backward += gather;
    }
    return Later(std::max(of.forward_ns, forward), std::max(of.backward_ns, backward));
  }

  int64_t Times(int64_t ns) const {
    const double all = static_cast<double>(ns) * static_cast<double>(checked_.micro_batches);
    return all >= static_cast<double>(kMaxNs) ? kMaxNs : ns * checked_.micro_batches;
  }

  // Of the first micro-batch's forward to a rank and of the last one's backward from it.
  int64_t WayTo(size_t rank) const {
    int64_t way = 0;
    for (size_t c = 0; c < rank; ++c) way = Later(way, micro_batch_ns_[c] + 2 * Boundary());
    return way;
  }

  int64_t Boundary() const {
    const int64_t ends[] = {0, strides_.pp};
    return TransferNs(machine_.TierOf(ends), spread_.profile.stream_bytes);
  }

  // A sum or gather over cp and `data` ranks of dp.
  int64_t ReductionNs(CollectiveKind kind, int64_t bytes, int64_t data) const {
    const int64_t ranks = data * config_.cp;
    if (ranks <= 1 || bytes == 0) return 0;
    const int64_t ends[] = {0, (data - 1) * strides_.dp + (config_.cp - 1) * config_.tp};
    const NetworkTier& tier = machine_.TierOf(ends);
    // As many ports of a machine as the group can have ranks in it, at most.
    const int64_t most = machine_.tiers.front().ranks / config_.tp;
    const int64_t ports =
        &tier == &machine_.tiers.front() ? 1 : std::clamp<int64_t>(most, 1, ranks);
    return TransferNs(tier, RingWireBytes(kind, bytes, ranks) / ports);
  }

  // Of the first rank, whose backward ends last: gradients are whole when its last backward runs,
  // and the first forward waits for gathered parameters.
  int64_t Reductions() const {
    if (checked_.dp * config_.cp <= 1 || config_.zero >= 2) return 0;
    const LayerProfile& rank = ranks_.front();
    const LayerProfile& stage = stages_.front();
    int64_t grads = rank.grad_bytes;
    if (config_.gradient_sums != DType::kF32) grads /= 2;
    if (config_.zero == 0) {
      const int64_t sums = ReductionNs(CollectiveKind::kAllReduce, grads, checked_.dp);
      return std::max<int64_t>(0, sums - rank.backward_ns);
    }
    const int64_t scatter = ReductionNs(CollectiveKind::kReduceScatter, grads, spread_.near);
    const int64_t copies = CopyBytes(rank);
    const int64_t gather = ReductionNs(CollectiveKind::kAllGather, copies, spread_.near);
    return std::max<int64_t>(0, scatter - rank.backward_ns) +
           std::max<int64_t>(0, gather - stage.forward_ns);
  }

  // Ranks share cores: the work of all, spread evenly.
  int64_t WorkOnCores() const {
    double work = 0;
    for (const LayerProfile& rank : ranks_) {
      work += static_cast<double>(
                  Times(rank.compute_ns + rank.forward_queue_ns + rank.backward_queue_ns)) +
              static_cast<double>(ShareOf(rank.update_ns, spread_.shares));
    }
    const int64_t ranks = config_.world_size / config_.pp;  // of a pipeline rank
    work *= static_cast<double>(ranks);
    return static_cast<int64_t>(
        std::min(work / static_cast<double>(machine_.cores), static_cast<double>(kMaxNs)));
  }

  const Spread& spread_;
  const ParallelConfig& config_;
  const CheckedConfig& checked_;
  const Machine& machine_;
  const std::vector<LayerProfile>& stages_;
  const std::vector<LayerProfile>& ranks_;
  const Strides strides_;
  std::vector<int64_t> micro_batch_ns_;  // by stage
  PlanBound bound_;
};

class MemoryBounder {
 public:
  // Outlives it.
  explicit MemoryBounder(const Spread& spread)
      : config_(spread.config),
        checked_(spread.checked),
        profile_(spread.profile),
        stages_(spread.stages),
        ranks_(spread.ranks),
        shares_(spread.shares) {}

  int64_t Run() const {
    int64_t most = 0;
    for (size_t c = 0; c < ranks_.size(); ++c) {
      const LayerProfile& rank = ranks_[c];
      int64_t bytes = ShareOf(rank.param_bytes, shares_) + ShareOf(rank.state_bytes, shares_);
      bytes += Gradients(c) + Copies(c);
      bytes += InFlight(c);
      // A forward's input is kept as long as its frame.
      if (c > 0) bytes += Begun(c) * profile_.stream_bytes;
      bytes += 2 * profile_.stream_bytes + rank.transient_bytes + rank.workspace_bytes;
      most = std::max(most, bytes);
    }
    return most;
  }

 private:
  // Sums in pieces, and what layers take in turn on their way there.
  int64_t Gradients(size_t c) const {
    if (config_.zero < 2) return ranks_[c].grad_bytes;
    return ShareOf(ranks_[c].grad_bytes, shares_) + InTurns(c, &LayerProfile::grad_bytes);
  }
  int64_t Copies(size_t c) const {
    if (config_.zero == 0) return ranks_[c].copy_bytes;
    if (config_.zero < 3 || !config_.reshard_after_forward) return CopyBytes(ranks_[c]);
    return InTurns(
        c, ranks_[c].copy_bytes > 0 ? &LayerProfile::copy_bytes : &LayerProfile::param_bytes);
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

  // Forwards of chunks whose backward has not run, where there are most.
  int64_t Begun(size_t c) const {
    const int64_t after = config_.pp - 1 - static_cast<int64_t>(c);
    const int64_t all = checked_.vp * checked_.micro_batches;
    switch (config_.schedule) {
      case ScheduleKind::kGpipe:
        return all;
      case ScheduleKind::kOneFOneB:
        return std::min(after + 1, all);
      case ScheduleKind::kInterleaved:
        return std::min(2 * after + (checked_.vp - 1) * checked_.group_size + 1, all);
    }
    return all;
  }

  // Their frames, at least.
  int64_t InFlight(size_t c) const {
    int64_t least = FrameOf(c);
    int64_t all = 0;
    for (size_t s = c; s < stages_.size(); s += ranks_.size()) {
      least = std::min(least, FrameOf(s));
      all += FrameOf(s);
    }
    const int64_t begun = Begun(c);
    return config_.schedule == ScheduleKind::kInterleaved ? begun * least
                                                          : begun / checked_.vp * all;
  }

  const ParallelConfig& config_;
  const CheckedConfig& checked_;
  const ModelProfile& profile_;
  const std::vector<LayerProfile>& stages_;
  const std::vector<LayerProfile>& ranks_;
  const int64_t shares_;
};

}  // namespace

std::vector<LayerProfile> ProfilesOfStages(const LayerPlacement& placement,
                                           const ModelProfile& profile) {
  std::vector<LayerProfile> stages(placement.stages.size());
  if (profile.layers.size() == 1) {
    const auto parts = static_cast<int64_t>(stages.size());
    for (LayerProfile& stage : stages) stage = EvenShare(profile.layers[0], parts);
    return stages;
  }
  const size_t first = profile.has_embedding ? 1 : 0;
  for (size_t s = 0; s < stages.size(); ++s) {
    const StageContent& content = placement.stages[s];
    if (content.has_embedding && profile.has_embedding) stages[s] += profile.layers.front();
    for (int64_t i = 0; i < content.num_layers; ++i) {
      const size_t layer = first + static_cast<size_t>(content.first_layer + i);
      if (layer < profile.layers.size()) stages[s] += profile.layers[layer];
    }
    if (content.has_head && profile.has_head) stages[s] += profile.layers.back();
  }
  return stages;
}

PlanBound BoundPlan(const ParallelConfig& config, const CheckedConfig& checked,
                    const ModelProfile& profile, const Machine& machine) {
  const Spread spread(config, checked, profile);
  PlanBound bound = TimeBounder(spread, machine).Run();
  bound.peak_bytes = MemoryBounder(spread).Run();
  return bound;
}

}  // namespace mgc
