// What a search knows of its candidates: profiles of groups and simulated plans, each made once.

#ifndef MGC_PASSES_SEARCH_PLANS_PLAN_ORACLE_H_
#define MGC_PASSES_SEARCH_PLANS_PLAN_ORACLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "passes/search/plans/bound_plan.h"
#include "passes/search/plans/choose_layers.h"
#include "passes/search/plans/estimate_step.h"
#include "passes/search/plans/model_compilers.h"
#include "passes/search/plans/model_profile.h"
#include "passes/search/plans/search_plans.h"
#include "passes/search/plans/search_space.h"

namespace mgc {

class PlanOracle {
 public:
  // `request` outlives it.
  explicit PlanOracle(const SearchRequest& request);

  const SearchSpace& space() const { return space_; }
  const SearchRequest& request() const { return request_; }

  // Of the group's first kind of recomputation: none, unless another is fixed. Null where the
  // compiler refuses the group. Errors: those of Compile that are no refusals.
  absl::StatusOr<const ModelProfile*> ProfileOf(size_t group);
  // Null where there is none yet, too.
  const ModelProfile* KnownProfile(size_t group) const;

  // The candidate with its layers chosen for `memory`: nothing is computed again where that fits,
  // and of several chunks a rank stages are cut evenly unless others are expected to be faster by
  // far. With its estimate. Nothing where no choice fits.
  absl::StatusOr<absl::optional<LayerChoice>> ChooseFor(size_t group, size_t index, int64_t memory);
  // How much longer than its bound the candidate's step takes, about, for what `memory` has it
  // compute again.
  absl::StatusOr<int64_t> RecomputedNs(size_t group, size_t index, int64_t memory);
  // The bound of a configuration of the group with layers that have been chosen; nothing where the
  // compiler refuses what is computed again. And its estimate, where nothing is refused.
  absl::StatusOr<absl::optional<PlanBound>> BoundOf(size_t group, const ParallelConfig& config);
  absl::StatusOr<int64_t> EstimateOf(size_t group, const ParallelConfig& config);
  bool HasFreeCuts(const ParallelConfig& config) const;
  bool HasFreeRecomputation() const { return !request_.fixed.recompute; }

  // What the plan of a configuration comes to, its evaluation left out. Null where the compiler
  // refuses it. Errors: likewise.
  absl::StatusOr<const FoundPlan*> PlanOf(const ParallelConfig& config);

  // A plan that has been compiled, its evaluation with it: from now on its peak is that.
  absl::StatusOr<FoundPlan> WholeOf(const FoundPlan& plan);

  // The first refusal of the compiler; OK where there was none.
  const absl::Status& refusal() const { return refusal_; }
  // All plans that have been compiled, whether they fit or not, in a fixed order.
  std::vector<FoundPlan> Compiled() const;

  int64_t profiled() const { return static_cast<int64_t>(profiles_.size()); }
  int64_t compiled() const { return static_cast<int64_t>(plans_.size()); }
  bool IsCompiled(const ParallelConfig& config) const;
  const std::shared_ptr<ModelCompilers>& models() const { return models_; }

 private:
  size_t FirstKind() const;
  absl::StatusOr<const ModelProfile*> ProfileOf(size_t group, size_t kind);
  // The first kind's, and the others' where they are free.
  absl::StatusOr<ProfilesByKind> ProfilesOf(size_t group);
  absl::StatusOr<absl::optional<LayerChoice>> ChooseCut(size_t group, const LayerChoices& choices,
                                                        int64_t memory, bool free_cuts);
  // The profile of a configuration of the group; null where some of it is refused.
  absl::StatusOr<std::shared_ptr<const ModelProfile>> MixedProfileOf(size_t group,
                                                                     const ParallelConfig& config);
  absl::StatusOr<ModelProfile> ProfileWith(ModelCompiler& model, CompileOptions options);
  // Rows that are chosen for a configuration's profile key; null where those of the request serve.
  absl::StatusOr<const StrategySpec*> StrategyOf(const ParallelConfig& config);
  absl::StatusOr<bool> CutsParametersOver(int64_t tp);
  absl::StatusOr<FoundPlan> Simulate(const ParallelConfig& config, bool evaluation);
  void NoteRefusal(const absl::Status& status) {
    if (refusal_.ok() && IsRefusal(status)) refusal_ = status;
  }

  const SearchRequest& request_;
  const SearchSpace space_;
  absl::Status refusal_;
  ScheduleCache schedules_;
  const std::shared_ptr<ModelCompilers> models_;
  std::map<int64_t, bool> named_;  // by tp: whether the request's strategy cuts some parameter
  std::map<ProfileKey, StrategySpec> strategies_;
  std::map<std::pair<size_t, size_t>, std::unique_ptr<ModelProfile>> profiles_;  // group, kind
  std::map<std::string, std::unique_ptr<FoundPlan>> plans_;                      // by flags
  std::set<std::string> whole_;                                                  // of those
};

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_PLAN_ORACLE_H_
