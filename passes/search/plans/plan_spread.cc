#include "passes/search/plans/plan_spread.h"

#include <algorithm>

#include "graph/types/mesh.h"

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

}  // namespace

PlanSpread::PlanSpread(const ParallelConfig& of, const CheckedConfig& checked_of,
                       const ModelProfile& profiled)
    : config(of),
      checked(checked_of),
      profile(profiled),
      parts(
          std::make_shared<const StageProfiles>(ProfilesOfStages(checked_of.placement, profiled))) {
  ShareOut();
  const absl::StatusOr<Mesh> mesh = Mesh::FromOrder(
      config.order, {{"tp", config.tp}, {"cp", config.cp}, {"dp", checked.dp}, {"pp", config.pp}});
  if (!mesh.ok()) return;
  const AxisId data = mesh->FindAtomic("dp");
  const AxisId pipeline = mesh->FindAtomic("pp");
  if (data >= 0) dp_stride = mesh->stride(data);
  if (pipeline >= 0) pp_stride = mesh->stride(pipeline);
}

PlanSpread::PlanSpread(const PlanSpread& other, const ParallelConfig& of)
    : config(of),
      checked(other.checked),
      profile(other.profile),
      parts(other.parts),
      dp_stride(other.dp_stride),
      pp_stride(other.pp_stride) {
  ShareOut();
}

void PlanSpread::ShareOut() {
  near = config.zero_group > 0 ? config.zero_group : checked.dp;
  shares = config.zero == 0 ? 1 : config.cp * near;
}

int64_t PlanSpread::BlockBytes(const LayerProfile& part) const {
  int64_t bytes = ShareOf(part.param_bytes, shares) + ShareOf(part.state_bytes, shares);
  bytes += config.zero < 2 ? part.grad_bytes : ShareOf(part.grad_bytes, shares);
  // Rounded gradients wait for each other beside the sums that they are made of; these are padded,
  // which is much of them where parameters are few.
  const bool rounds = config.gradient_sums != DType::kF32 && checked.dp * config.cp > 1;
  if (rounds && config.zero < 2) bytes += SummedBytes(part) - SummedBytes(part) / 8;
  if (config.zero == 0) return bytes + part.copy_bytes;
  return GathersInTurn() ? bytes : bytes + CopyBytes(part);
}

std::vector<size_t> PlanSpread::LayersOf(size_t stage) const {
  if (profile.layers.size() == 1) return {0};
  const StageContent& content = checked.placement.stages[stage];
  const size_t first = profile.has_embedding ? 1 : 0;
  std::vector<size_t> layers;
  layers.reserve(static_cast<size_t>(content.num_layers) + 2);
  if (content.has_embedding && profile.has_embedding) layers.push_back(0);
  for (int64_t l = 0; l < content.num_layers; ++l) {
    const size_t layer = first + static_cast<size_t>(content.first_layer + l);
    if (layer < profile.layers.size()) layers.push_back(layer);
  }
  if (content.has_head && profile.has_head) layers.push_back(profile.layers.size() - 1);
  return layers;
}

int64_t PlanSpread::Begun(size_t rank) const {
  const int64_t after = config.pp - 1 - static_cast<int64_t>(rank);
  const int64_t all = checked.vp * checked.micro_batches;
  switch (config.schedule) {
    case ScheduleKind::kGpipe:
      return all;
    case ScheduleKind::kOneFOneB:
      return std::min(after + 1, all);
    case ScheduleKind::kInterleaved:
      return std::min(2 * after + (checked.vp - 1) * checked.group_size + 1, all);
  }
  return all;
}

namespace {

std::vector<LayerProfile> ProfilesByStage(const LayerPlacement& placement,
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

}  // namespace

StageProfiles ProfilesOfStages(const LayerPlacement& placement, const ModelProfile& profile) {
  StageProfiles parts;
  parts.stages = ProfilesByStage(placement, profile);
  parts.ranks.resize(static_cast<size_t>(placement.pp));
  for (size_t s = 0; s < parts.stages.size(); ++s) {
    parts.ranks[static_cast<size_t>(placement.places[s].rank_class)] += parts.stages[s];
  }
  return parts;
}

}  // namespace mgc
