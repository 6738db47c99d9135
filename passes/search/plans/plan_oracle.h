// What a search knows of its candidates: profiles of groups and compiled plans, each made once.

#ifndef MGC_PASSES_SEARCH_PLANS_PLAN_ORACLE_H_
#define MGC_PASSES_SEARCH_PLANS_PLAN_ORACLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/search/plans/bound_plan.h"
#include "passes/search/plans/model_profile.h"
#include "passes/search/plans/search_plans.h"
#include "passes/search/plans/search_space.h"

namespace mgc {

class PlanOracle {
 public:
  // `request` outlives it.
  explicit PlanOracle(const SearchRequest& request);

  const SearchSpace& space() const { return space_; }
  const ParallelConfig& config(size_t group, size_t index) const {
    return space_.groups[group].candidates[index];
  }

  // Null where the compiler refuses the group. Errors: those of Compile that are no refusals.
  absl::StatusOr<const ModelProfile*> ProfileOf(size_t group);
  // Null where there is none yet, too.
  const ModelProfile* KnownProfile(size_t group) const {
    const auto known = profiles_.find(group);
    return known == profiles_.end() ? nullptr : known->second.get();
  }
  PlanBound BoundOf(const ParallelConfig& config, const ModelProfile& profile) const;
  // Null where the compiler refuses the candidate. Errors: likewise.
  absl::StatusOr<const FoundPlan*> PlanOf(size_t group, size_t index);

  // The first refusal of the compiler; OK where there was none.
  const absl::Status& refusal() const { return refusal_; }
  // All plans that have been compiled, whether they fit or not, in the order of candidates.
  std::vector<FoundPlan> Compiled() const;

  int64_t profiled() const { return static_cast<int64_t>(profiles_.size()); }
  int64_t compiled() const { return static_cast<int64_t>(plans_.size()); }
  bool IsCompiled(size_t group, size_t index) const { return plans_.count({group, index}) > 0; }

 private:
  void NoteRefusal(const absl::Status& status) {
    if (refusal_.ok() && IsRefusal(status)) refusal_ = status;
  }

  const SearchRequest& request_;
  const SearchSpace space_;
  absl::Status refusal_;
  std::map<size_t, std::unique_ptr<ModelProfile>> profiles_;               // by group
  std::map<std::pair<size_t, size_t>, std::unique_ptr<FoundPlan>> plans_;  // and candidate
};

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_PLAN_ORACLE_H_
