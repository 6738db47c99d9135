#include "passes/search/plans/choose_layers.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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

std::vector<int64_t> LayersOfStages(const CheckedConfig& checked) {
  std::vector<int64_t> layers;
  for (const StageContent& stage : checked.placement.stages) layers.push_back(stage.num_layers);
  return layers;
}

// The layers of every rank, ascending.
std::vector<std::vector<int64_t>> LayersOfRanks(const LayerPlacement& placement) {
  std::vector<std::vector<int64_t>> layers(static_cast<size_t>(placement.pp));
  for (size_t s = 0; s < placement.stages.size(); ++s) {
    const StageContent& stage = placement.stages[s];
    std::vector<int64_t>& own = layers[static_cast<size_t>(placement.places[s].rank_class)];
    for (int64_t l = 0; l < stage.num_layers; ++l) own.push_back(stage.first_layer + l);
  }
  return layers;
}

}  // namespace

std::string LayoutText(const std::vector<int64_t>& layers) {
  const auto text_of = [](int64_t count) {
    return count == 0 ? "" : count == 1 ? std::string("t") : absl::StrCat("t*", count);
  };
  std::string text = absl::StrCat("E", text_of(layers.front()));
  for (size_t s = 1; s < layers.size();) {
    size_t end = s + 1;
    while (end < layers.size() && layers[end] == layers[s]) ++end;
    const std::string stage = absl::StrCat("|", text_of(layers[s]));
    absl::StrAppend(&text, end - s > 1 ? absl::StrCat("(", stage, ")*", end - s) : stage);
    s = end;
  }
  return absl::StrCat(text, "L");
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

LayerChoices::LayerChoices(const ParallelConfig& config, const ModelDims& dims,
                           const Machine& machine, const ModelProfile& least)
    : config_(config),
      dims_(dims),
      machine_(machine),
      even_(CheckConfig(config_, dims)),
      spread_(config_, even_, least) {}

absl::optional<LayerChoice> LayerChoices::Choose(const ProfilesByKind& profiles, int64_t memory,
                                                 bool free_cuts, ScheduleCache* schedules) const {
  int64_t within = memory;
  for (int i = 0; i < kMostTries; ++i) {
    LayerChooser chooser(spread_, profiles, within);
    if (!chooser.knows_layers()) return ChooseOneKind(profiles, memory, schedules);
    absl::optional<LayerChoice> choice =
        ChooseBy(&chooser, profiles, memory, free_cuts && chooser.can_cut(), schedules);
    if (!choice.has_value() || choice->bound.peak_bytes <= memory) return choice;
    within -= choice->bound.peak_bytes - memory;
  }
  return absl::nullopt;
}

int64_t LayerChoices::ExpectRecomputedNs(const ProfilesByKind& profiles, int64_t memory) const {
  return LayerChooser(spread_, profiles, memory).RecomputedNs();
}

// Of a model whose layers nothing tells apart: the first kind that fits.
absl::optional<LayerChoice> LayerChoices::ChooseOneKind(const ProfilesByKind& profiles,
                                                        int64_t memory,
                                                        ScheduleCache* schedules) const {
  for (size_t k = 0; k < kNumRecomputeKinds; ++k) {
    if (profiles[k] == nullptr) continue;
    const PlanSpread spread(config_, even_, *profiles[k]);
    const PlanBound bound = BoundPlan(spread, machine_);
    if (bound.peak_bytes > memory) continue;
    LayerChoice choice{config_, bound, EstimateStepNs(spread, machine_, schedules)};
    choice.config.recompute = kRecomputeKinds[k];
    return choice;
  }
  return absl::nullopt;
}

// Estimated if it is within `memory`.
absl::optional<LayerChoice> LayerChoices::ChooseBy(LayerChooser* chooser,
                                                   const ProfilesByKind& profiles, int64_t memory,
                                                   bool cuts, ScheduleCache* schedules) const {
  LayerChoice made{config_, {}, 0};
  absl::optional<CheckedConfig> cut;
  if (cuts && config_.pp > 1) {
    const std::vector<int64_t> counts = chooser->BestCounts();
    if (counts.empty()) return absl::nullopt;
    const std::vector<int64_t> stages = chooser->OverStages(counts);
    if (stages != LayersOfStages(even_)) {
      made.config.layout.layout = LayoutText(stages);
      cut = CheckConfig(made.config, dims_);
    }
  }
  const CheckedConfig& checked = cut.has_value() ? *cut : even_;
  std::vector<std::vector<RecomputeKind>> kinds;
  for (const std::vector<int64_t>& layers : LayersOfRanks(checked.placement)) {
    absl::optional<std::vector<RecomputeKind>> of_rank = chooser->KindsOf(kinds.size(), layers);
    if (!of_rank.has_value()) return absl::nullopt;
    kinds.push_back(*std::move(of_rank));
  }
  made.config.recompute = SimplestOf(ByLayer(checked.placement, kinds));
  const std::shared_ptr<const ModelProfile> mixed = MixProfiles(profiles, made.config.recompute);
  const PlanSpread spread(made.config, checked, *mixed);
  made.bound = BoundPlan(spread, machine_);
  if (made.bound.peak_bytes <= memory) {
    made.estimate_ns = EstimateStepNs(spread, machine_, schedules);
  }
  return made;
}

}  // namespace mgc
