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
// (passes/search/plans/chunk_layers.h). What is said of layers that are not all alike is their
// recomputation alone, stages are cut evenly.
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
#include "passes/search/plans/model_profile.h"

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

// `config` with the layout and the recomputation that take least time within `memory` bytes a rank,
// as far as bounds know. Nothing where none fits. `free_cuts`: stages may be cut otherwise than
// evenly. At least one profile may be used.
absl::optional<LayerChoice> ChooseLayers(const ParallelConfig& config, const ModelDims& dims,
                                         const ProfilesByKind& profiles, const Machine& machine,
                                         int64_t memory, bool free_cuts, ScheduleCache* schedules);

// By how much longer a step takes, about, because even stages compute again what does not fit: each
// rank on average. 0 where layers are not alike. It takes a small part of what choosing does.
int64_t ExpectRecomputedNs(const ParallelConfig& config, const ModelDims& dims,
                           const ProfilesByKind& profiles, int64_t memory);

// A layout string (passes/config/layout_string.h) of stages that have so many layers each.
std::string LayoutText(const ModelDims& dims, const std::vector<int64_t>& layers);

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_CHOOSE_LAYERS_H_
