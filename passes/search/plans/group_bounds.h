// Bounds of all candidates of a group, with stages cut evenly. Searches within other memory ask for
// the same ones: each is made once.

#ifndef MGC_PASSES_SEARCH_PLANS_GROUP_BOUNDS_H_
#define MGC_PASSES_SEARCH_PLANS_GROUP_BOUNDS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "passes/search/plans/group_tree.h"
#include "passes/search/plans/model_profile.h"
#include "passes/search/plans/plan_oracle.h"

namespace mgc {

// Of a PlanBound what is kept of each candidate.
struct CandidateBound {
  int64_t step_ns = 0;
  int64_t least_ns = 0;  // wherever stages are cut
  int64_t peak_bytes = 0;
  int64_t held_bytes = 0;
};

class GroupBounds {
 public:
  // Both outlive it.
  GroupBounds(const PlanOracle& oracle, const GroupTree& tree) : oracle_(oracle), tree_(tree) {}

  const GroupTree& tree() const { return tree_; }

  // By the group's own profile, in the order of its candidates.
  const std::vector<CandidateBound>& Of(size_t group, const ModelProfile& profile);
  // By what the profile of `finer` may be like, where that of `group` is known: of the candidates
  // that differ in the order of axes, ZeRO groups and chunks the first and, of chunks, the last one
  // too. They say which groups to look at first.
  const std::vector<CandidateBound>& Expected(size_t finer, size_t group,
                                              const ModelProfile& profile);

 private:
  // Of all candidates of a group, or one for each that differ as said above.
  std::vector<CandidateBound> Make(size_t group, const ModelProfile& profile, bool all) const;

  const PlanOracle& oracle_;
  const GroupTree& tree_;
  // By the group, and the one of whose profile they are.
  std::map<std::pair<size_t, size_t>, std::vector<CandidateBound>> bounds_;
};

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_GROUP_BOUNDS_H_
