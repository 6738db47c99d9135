#include "passes/search/plans/choose_layers.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "passes/search/plans/layer_chooser.h"
#include "passes/search/plans/plan_spread.h"

namespace mgc {
namespace {

// How often a choice that a bound finds too large is made again with less memory.
constexpr int kMostTries = 4;

size_t IndexOf(RecomputeKind kind) { return static_cast<size_t>(kind); }

// The one without recomputation, or with as little as is allowed.
const ModelProfile& LeastOf(const ProfilesByKind& profiles) {
  return **std::find_if(profiles.begin(), profiles.end(),
                        [](const ModelProfile* profile) { return profile != nullptr; });
}

// The kinds of a rank's layers, in the order in which the model has them.
void AddKinds(const KindCounts& counts, std::vector<RecomputeKind>* kinds) {
  for (size_t k = kNumRecomputeKinds; k-- > 0;) {
    kinds->insert(kinds->end(), static_cast<size_t>(counts[k]), kRecomputeKinds[k]);
  }
}

// By rank and then chunk to the order of layers in the model.
std::vector<RecomputeKind> ByLayer(const LayerPlacement& placement,
                                   const std::vector<std::vector<RecomputeKind>>& by_rank) {
  std::vector<RecomputeKind> kinds;
  std::vector<size_t> taken(by_rank.size(), 0);
  for (size_t s = 0; s < placement.stages.size(); ++s) {
    const auto rank = static_cast<size_t>(placement.places[s].rank_class);
    for (int64_t l = 0; l < placement.stages[s].num_layers; ++l) {
      kinds.push_back(by_rank[rank][taken[rank]++]);
    }
  }
  return kinds;
}

// Whether what a layer costs is about the same in all.
bool AreAlike(const ModelProfile& profile) {
  const size_t first = profile.has_embedding ? 1 : 0;
  const size_t end = profile.layers.size() - (profile.has_head ? 1 : 0);
  if (first >= end) return false;
  const LayerProfile& one = profile.layers[first + (end - first) / 2];
  const auto near = [](int64_t a, int64_t b) { return std::abs(a - b) <= b / 16; };
  return std::all_of(
      profile.layers.begin() + static_cast<int64_t>(first),
      profile.layers.begin() + static_cast<int64_t>(end), [&](const LayerProfile& layer) {
        return near(layer.forward_ns + layer.backward_ns, one.forward_ns + one.backward_ns) &&
               near(layer.frame_bytes, one.frame_bytes) && near(layer.param_bytes, one.param_bytes);
      });
}

// The same kind in all layers: the first that fits.
absl::optional<LayerChoice> ChooseAlike(const ParallelConfig& config, const ModelDims& dims,
                                        const ProfilesByKind& profiles, const Machine& machine,
                                        int64_t memory, ScheduleCache* schedules) {
  const CheckedConfig checked = CheckConfig(config, dims);
  for (size_t k = 0; k < kNumRecomputeKinds; ++k) {
    if (profiles[k] == nullptr) continue;
    const PlanSpread spread(config, checked, *profiles[k]);
    const PlanBound bound = BoundPlan(spread, machine);
    if (bound.peak_bytes > memory) continue;
    LayerChoice choice{config, bound, EstimateStepNs(spread, machine, schedules)};
    choice.config.recompute = kRecomputeKinds[k];
    return choice;
  }
  return absl::nullopt;
}

std::vector<int64_t> LayersOfStages(const CheckedConfig& checked) {
  std::vector<int64_t> layers;
  for (const StageContent& stage : checked.placement.stages) layers.push_back(stage.num_layers);
  return layers;
}

// Within what the chooser believes to be `within`; estimated if it is within `memory`.
absl::optional<LayerChoice> ChooseWithin(const ParallelConfig& config, const ModelDims& dims,
                                         const ProfilesByKind& profiles, const Machine& machine,
                                         int64_t within, int64_t memory, bool free_cuts,
                                         ScheduleCache* schedules) {
  const CheckedConfig even = CheckConfig(config, dims);
  const PlanSpread spread(config, even, LeastOf(profiles));
  LayerChooser chooser(spread, profiles, within);
  const std::vector<int64_t> even_counts = chooser.EvenCounts();
  const bool cuts = free_cuts && config.pp > 1;
  const std::vector<int64_t> counts = cuts ? chooser.BestCounts() : even_counts;
  if (counts.empty()) return absl::nullopt;
  std::vector<std::vector<RecomputeKind>> kinds(counts.size());
  for (size_t c = 0; c < counts.size(); ++c) {
    const RankChoice choice = chooser.Choose(c, counts[c]);
    if (!choice.fits) return absl::nullopt;
    AddKinds(choice.counts, &kinds[c]);
  }
  LayerChoice made{config, {}, 0};
  if (cuts) {
    const std::vector<int64_t> stages = chooser.OverStages(counts);
    if (stages != LayersOfStages(even)) made.config.layout.layout = LayoutText(dims, stages);
  }
  const CheckedConfig checked = CheckConfig(made.config, dims);
  made.config.recompute = SimplestOf(ByLayer(checked.placement, kinds));
  const std::shared_ptr<const ModelProfile> mixed = MixProfiles(profiles, made.config.recompute);
  const PlanSpread made_spread(made.config, checked, *mixed);
  made.bound = BoundPlan(made_spread, machine);
  if (made.bound.peak_bytes <= memory) {
    made.estimate_ns = EstimateStepNs(made_spread, machine, schedules);
  }
  return made;
}

}  // namespace

std::string LayoutText(const ModelDims& dims, const std::vector<int64_t>& layers) {
  const auto text_of = [](int64_t count) {
    return count == 0 ? "" : count == 1 ? std::string("t") : absl::StrCat("t*", count);
  };
  std::string text = absl::StrCat(dims.places.embedding ? "E" : "", text_of(layers.front()));
  for (size_t s = 1; s < layers.size();) {
    size_t end = s + 1;
    while (end < layers.size() && layers[end] == layers[s]) ++end;
    const std::string stage = absl::StrCat("|", text_of(layers[s]));
    absl::StrAppend(&text, end - s > 1 ? absl::StrCat("(", stage, ")*", end - s) : stage);
    s = end;
  }
  return absl::StrCat(text, dims.places.head ? "L" : "");
}

std::shared_ptr<const ModelProfile> MixProfiles(const ProfilesByKind& profiles,
                                                const Recomputation& recomputation) {
  if (recomputation.by_layer().empty()) {
    const ModelProfile* only = profiles[IndexOf(recomputation.Of(0))];
    return std::shared_ptr<const ModelProfile>(std::shared_ptr<void>(), only);
  }
  auto made = std::make_shared<ModelProfile>(LeastOf(profiles));
  ModelProfile& mixed = *made;
  const size_t first = mixed.has_embedding ? 1 : 0;
  for (size_t l = 0; l < recomputation.by_layer().size(); ++l) {
    const ModelProfile* profile = profiles[IndexOf(recomputation.by_layer()[l])];
    if (first + l < mixed.layers.size()) mixed.layers[first + l] = profile->layers[first + l];
  }
  return made;
}

absl::optional<LayerChoice> ChooseLayers(const ParallelConfig& config, const ModelDims& dims,
                                         const ProfilesByKind& profiles, const Machine& machine,
                                         int64_t memory, bool free_cuts, ScheduleCache* schedules) {
  if (!AreAlike(LeastOf(profiles))) {
    return ChooseAlike(config, dims, profiles, machine, memory, schedules);
  }
  int64_t within = memory;
  for (int i = 0; i < kMostTries; ++i) {
    absl::optional<LayerChoice> choice =
        ChooseWithin(config, dims, profiles, machine, within, memory, free_cuts, schedules);
    if (!choice.has_value() || choice->bound.peak_bytes <= memory) return choice;
    within -= choice->bound.peak_bytes - memory;
  }
  return absl::nullopt;
}

int64_t ExpectRecomputedNs(const ParallelConfig& config, const ModelDims& dims,
                           const ProfilesByKind& profiles, int64_t memory) {
  if (!AreAlike(LeastOf(profiles))) return 0;
  const CheckedConfig even = CheckConfig(config, dims);
  return LayerChooser(PlanSpread(config, even, LeastOf(profiles)), profiles, memory).RecomputedNs();
}

}  // namespace mgc
