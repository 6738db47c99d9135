// Which layers each stage of a plan has, and what is computed again in each: the least time of the
// slowest stage that fits into memory.
//
//   pp 2, 4 layers and a large head   ->   layout Et*3|tL
//   80 GiB, where 5 layers do not fit ->   recompute full,none*4,none*5
//
// A layer costs a stage its time, and its frame once for every micro-batch that the schedule has
// begun and not ended there; computing it again costs time and saves frame. Both are decided
// together: for every rank the least time of n layers within its memory, then the least limit on
// ranks' times under which all layers have a place; a rank's chunks share its layers
// (passes/search/plans/chunk_layers.h). Of layers that are not alike each is looked at for itself
// (passes/search/plans/choose_kinds.h); where a rank has several chunks of them, stages are cut
// evenly.
//
// The shape is that of AdaPipe's dynamic program (ASPLOS 2024), with layers' profiles read off the
// compiler's segments.

#ifndef MGC_PASSES_SEARCH_PLANS_CHOOSE_LAYERS_H_
#define MGC_PASSES_SEARCH_PLANS_CHOOSE_LAYERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "graph/types/machine.h"
#include "graph/types/model_dims.h"
#include "passes/config/check_config.h"
#include "passes/config/parallel_config.h"
#include "passes/search/plans/bound_plan.h"
#include "passes/search/plans/estimate_step.h"
#include "passes/search/plans/layer_chooser.h"
#include "passes/search/plans/model_profile.h"
#include "passes/search/plans/plan_spread.h"

namespace mgc {

// Each layer's from the profile of its kind; embedding and head as they are without any. Of one
// kind it is that profile itself, which outlives it.
std::shared_ptr<const ModelProfile> MixProfiles(const ProfilesByKind& profiles,
                                                const Recomputation& recomputation);

struct LayerChoice {
  ParallelConfig config;
  PlanBound bound;
  int64_t estimate_ns = 0;  // of the step (estimate_step.h)
};

// The choices for one configuration.
class LayerChoices {
 public:
  // All outlive it. `config` is without violations; `least`: the profile with as little
  // recomputation as may be used.
  LayerChoices(const ParallelConfig& config, const ModelDims& dims, const Machine& machine,
               const ModelProfile& least);
  LayerChoices(const LayerChoices&) = delete;
  LayerChoices& operator=(const LayerChoices&) = delete;

  // The configuration with the layout and the recomputation that take least time within `memory`
  // bytes a rank, as far as bounds know. Nothing where none fits. `free_cuts`: stages may be cut
  // otherwise than evenly. At least one profile may be used.
  absl::optional<LayerChoice> Choose(const ProfilesByKind& profiles, int64_t memory, bool free_cuts,
                                     ScheduleCache* schedules) const;

  // By how much longer a step takes, about, because of what is computed again where memory is
  // short. It takes a small part of what choosing does.
  int64_t ExpectRecomputedNs(const ProfilesByKind& profiles, int64_t memory) const;

 private:
  absl::optional<LayerChoice> ChooseOneKind(const ProfilesByKind& profiles, int64_t memory,
                                            ScheduleCache* schedules) const;
  absl::optional<LayerChoice> ChooseBy(LayerChooser* chooser, const ProfilesByKind& profiles,
                                       int64_t memory, bool cuts, ScheduleCache* schedules) const;

  const ParallelConfig& config_;
  const ModelDims& dims_;
  const Machine& machine_;
  const CheckedConfig even_;  // of config_, whose stages are cut evenly
  const PlanSpread spread_;   // likewise
};

// A layout string (passes/config/layout_string.h) of stages that have so many layers each. E and L
// stand in it whether the model has such ends or not.
std::string LayoutText(const std::vector<int64_t>& layers);

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_CHOOSE_LAYERS_H_
