// Who holds what of a profile under one configuration: what bounds of whole plans (bound_plan.h)
// and choices for their layers (choose_layers.h) stand on.

#ifndef MGC_PASSES_SEARCH_PLANS_PLAN_SPREAD_H_
#define MGC_PASSES_SEARCH_PLANS_PLAN_SPREAD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "graph/types/machine.h"
#include "passes/config/check_config.h"
#include "passes/config/parallel_config.h"
#include "passes/search/plans/model_profile.h"

namespace mgc {

// What each stage and each pipeline rank holds of a profile.
struct StageProfiles {
  std::vector<LayerProfile> stages;
  std::vector<LayerProfile> ranks;  // all its stages
};

struct PlanSpread {
  // All outlive it. `checked` is of `config` and without violations.
  PlanSpread(const ParallelConfig& config, const CheckedConfig& checked,
             const ModelProfile& profile);
  // Of a configuration that differs from that of `other` in ZeRO alone.
  PlanSpread(const PlanSpread& other, const ParallelConfig& config);

  // Of a part of the model, what a rank holds in working copies. Without types of their own they
  // are made where masters are cut.
  static int64_t CopyBytes(const LayerProfile& part) {
    return part.copy_bytes > 0 ? part.copy_bytes : part.param_bytes;
  }
  // Parameters and what belongs to them, but for what layers take in turn.
  int64_t BlockBytes(const LayerProfile& part) const;
  bool GathersInTurn() const { return config.zero == 3 && config.reshard_after_forward; }
  // Embedding, layers and head of a stage, in the profile's numbers; 0 where that has one layer,
  // of which every stage has a share.
  std::vector<size_t> LayersOf(size_t stage) const;
  // Forwards of a rank's chunks whose backward has not run, where there are most.
  int64_t Begun(size_t rank) const;
  // What its gradients are in the type in which they are summed over ranks.
  int64_t SummedBytes(const LayerProfile& part) const {
    return config.gradient_sums == DType::kF32 ? part.grad_bytes : part.grad_bytes / 2;
  }

  const ParallelConfig& config;
  const CheckedConfig& checked;
  const ModelProfile& profile;
  std::shared_ptr<const StageProfiles> parts;
  int64_t near = 1;       // ranks along dp that share the pieces of a parameter
  int64_t shares = 1;     // and along cp
  int64_t dp_stride = 1;  // between ranks that are neighbours along dp, and along pp
  int64_t pp_stride = 1;

 private:
  void ShareOut();
};

// Where a profile has one layer that nothing cuts, every stage has an even share of it.
StageProfiles ProfilesOfStages(const LayerPlacement& placement, const ModelProfile& profile);

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_PLAN_SPREAD_H_
