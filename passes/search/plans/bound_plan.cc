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
  share.queue_ns = ShareOf(all.queue_ns, parts);
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

// Bounds of one configuration.
class Bounder {
 public:
  Bounder(const ParallelConfig& config, const CheckedConfig& checked, const ModelProfile& profile,
          const Machine& machine)
      : config_(config),
        checked_(checked),
        profile_(profile),
        machine_(machine),
        stages_(ProfilesOfStages(checked.placement, profile)),
        strides_(StridesOf(config, checked.dp)),
        near_(config.zero_group > 0 ? config.zero_group : checked.dp),
        shares_(config.zero == 0 ? 1 : config.cp * near_) {
    ranks_.resize(static_cast<size_t>(config.pp));
    const std::vector<StagePlace>& places = checked.placement.places;
    for (size_t s = 0; s < places.size(); ++s) {
      ranks_[static_cast<size_t>(places[s].rank_class)] += stages_[s];
    }
  }

  PlanBound Run() {
    BoundTime();
    BoundMemory();
    return bound_;
  }

 private:
  void BoundTime() {
    bound_.pipeline_ns = 0;
    for (size_t c = 0; c < ranks_.size(); ++c) {
      const int64_t way = WayTo(c);
      const int64_t busy = Times(ranks_[c].forward_ns + ranks_[c].backward_ns);
      if (Later(way, busy) <= bound_.pipeline_ns) continue;
      bound_.pipeline_ns = Later(way, busy);
      bound_.bubble_ns = way;
    }
    bound_.reduction_ns = Reductions();
    bound_.update_ns = ShareOf(ranks_.front().update_ns, shares_);
    bound_.step_ns = Later(Later(bound_.pipeline_ns, bound_.reduction_ns), bound_.update_ns);
    bound_.step_ns = std::max(bound_.step_ns, QueueNs());
    if (machine_.cores > 0) bound_.step_ns = WorkOnCores();
  }

  int64_t Times(int64_t ns) const {
    const double all = static_cast<double>(ns) * static_cast<double>(checked_.micro_batches);
    return all >= static_cast<double>(kMaxNs) ? kMaxNs : ns * checked_.micro_batches;
  }

  // Of the first micro-batch's forward to a rank and of the last one's backward from it.
  int64_t WayTo(size_t rank) const {
    int64_t way = 0;
    for (size_t c = 0; c < rank; ++c) {
      way = Later(way, stages_[c].forward_ns + stages_[c].backward_ns);
      way = Later(way, 2 * Boundary());
    }
    return way;
  }

  int64_t Boundary() const {
    const int64_t ends[] = {0, strides_.pp};
    return TransferNs(machine_.TierOf(ends), profile_.stream_bytes);
  }

  // A sum or gather over cp and `data` ranks of dp.
  int64_t ReductionNs(CollectiveKind kind, int64_t bytes, int64_t data) const {
    const int64_t ranks = data * config_.cp;
    if (ranks <= 1 || bytes == 0) return 0;
    const int64_t ends[] = {0, (data - 1) * strides_.dp + (config_.cp - 1) * config_.tp};
    const NetworkTier& tier = machine_.TierOf(ends);
    return TransferNs(tier, RingWireBytes(kind, bytes, ranks));
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
    const int64_t scatter = ReductionNs(CollectiveKind::kReduceScatter, grads, near_);
    const int64_t copies = CopyBytes(rank);
    const int64_t gather = ReductionNs(CollectiveKind::kAllGather, copies, near_);
    return std::max<int64_t>(0, scatter - rank.backward_ns) +
           std::max<int64_t>(0, gather - stage.forward_ns);
  }

  // Of a rank's working copies. Without types of their own they are made where masters are cut.
  int64_t CopyBytes(const LayerProfile& rank) const {
    return rank.copy_bytes > 0 ? rank.copy_bytes : rank.param_bytes;
  }

  // The busiest communication queue.
  int64_t QueueNs() const {
    int64_t most = 0;
    for (const LayerProfile& rank : ranks_) {
      int64_t ns = Times(rank.queue_ns);
      if (config_.zero >= 2) ns = Later(ns, PerMicroBatch(rank));
      most = std::max(most, ns);
    }
    return most;
  }

  // Sums and gathers of every micro-batch of ZeRO 2 and 3.
  int64_t PerMicroBatch(const LayerProfile& rank) const {
    const int64_t scatter = ReductionNs(CollectiveKind::kReduceScatter, rank.grad_bytes, near_);
    if (config_.zero < 3) return Times(scatter);
    const int64_t gather = ReductionNs(CollectiveKind::kAllGather, CopyBytes(rank), near_);
    return Times(scatter + (config_.reshard_after_forward ? 2 : 1) * gather);
  }

  // Ranks share cores: the work of all, spread evenly.
  int64_t WorkOnCores() const {
    double work = 0;
    for (const LayerProfile& rank : ranks_) {
      work += static_cast<double>(Later(Times(rank.compute_ns), Times(rank.queue_ns))) +
              static_cast<double>(ShareOf(rank.update_ns, shares_));
    }
    work *= static_cast<double>(config_.world_size / config_.pp);
    return static_cast<int64_t>(
        std::min(work / static_cast<double>(machine_.cores), static_cast<double>(kMaxNs)));
  }

  void BoundMemory() {
    for (size_t c = 0; c < ranks_.size(); ++c) {
      const LayerProfile& rank = ranks_[c];
      int64_t bytes = ShareOf(rank.param_bytes, shares_) + ShareOf(rank.state_bytes, shares_);
      bytes += config_.zero >= 2 ? ShareOf(rank.grad_bytes, shares_) : rank.grad_bytes;
      if (config_.zero < 3) bytes += config_.zero > 0 ? CopyBytes(rank) : rank.copy_bytes;
      bytes += InFlight(c);
      bytes += 2 * profile_.stream_bytes + rank.transient_bytes + rank.workspace_bytes;
      bound_.peak_bytes = std::max(bound_.peak_bytes, bytes);
    }
  }

  // Frames of the micro-batches that a rank has begun and not finished, where there are most.
  int64_t FrameOf(size_t s) const {
    const bool ends_model = s + 1 == stages_.size();
    return stages_[s].frame_bytes -
           (ends_model ? 0 : std::min(stages_[s].frame_bytes, profile_.stream_bytes));
  }
  int64_t InFlight(size_t c) const {
    const auto pp = static_cast<size_t>(config_.pp);
    const int64_t after = config_.pp - 1 - static_cast<int64_t>(c);
    const int64_t micro_batches = checked_.micro_batches;
    int64_t least = 0;  // of a chunk
    int64_t all = 0;
    for (size_t s = c; s < stages_.size(); s += pp) {
      least = s == c ? FrameOf(s) : std::min(least, FrameOf(s));
      all += FrameOf(s);
    }
    switch (config_.schedule) {
      case ScheduleKind::kGpipe:
        return micro_batches * all;
      case ScheduleKind::kOneFOneB:
        return std::min(after + 1, micro_batches) * all;
      case ScheduleKind::kInterleaved:
        break;
    }
    const int64_t begun = 2 * after + (checked_.vp - 1) * checked_.group_size + 1;
    return std::min(begun, checked_.vp * micro_batches) * least;
  }

  const ParallelConfig& config_;
  const CheckedConfig& checked_;
  const ModelProfile& profile_;
  const Machine& machine_;
  const std::vector<LayerProfile> stages_;
  const Strides strides_;
  const int64_t near_;               // ranks along dp that share the pieces of a parameter
  const int64_t shares_;             // and along cp
  std::vector<LayerProfile> ranks_;  // by pipeline rank, all its stages
  PlanBound bound_;
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
  return Bounder(config, checked, profile, machine).Run();
}

}  // namespace mgc
