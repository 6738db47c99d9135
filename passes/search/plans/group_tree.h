// In which order groups of candidates are looked at, and what bounds them before they are profiled.
//
//   tp 1      ->  tp 2  ->  tp 4 ...   the same work on more ranks, with no less communication
//   tp 2      ->  tp 2, cp 2 ...
//   any       ->  with recomputation   no less work, less memory

#ifndef MGC_PASSES_SEARCH_PLANS_GROUP_TREE_H_
#define MGC_PASSES_SEARCH_PLANS_GROUP_TREE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/types/machine.h"
#include "passes/search/plans/model_profile.h"
#include "passes/search/plans/search_space.h"

namespace mgc {

class GroupTree {
 public:
  // `groups` outlives it.
  explicit GroupTree(const std::vector<CandidateGroup>& groups);

  // Groups behind no other one.
  const std::vector<size_t>& roots() const { return roots_; }
  // The same with one prime factor more of tp or cp.
  const std::vector<size_t>& FinerThan(size_t group) const { return finer_[group]; }
  // The same with recomputation.
  const std::vector<size_t>& RecomputedOf(size_t group) const { return recomputed_[group]; }

  // No step of `finer`, or of a group behind it, takes less: the compute of `group`, spread evenly
  // over all ranks, and the communication that it leaves exposed.
  int64_t LeastStepNs(const ModelProfile& profile, size_t group, size_t finer,
                      const Machine& machine) const;

 private:
  const std::vector<CandidateGroup>& groups_;
  std::vector<size_t> roots_;
  std::vector<std::vector<size_t>> finer_;
  std::vector<std::vector<size_t>> recomputed_;
};

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_GROUP_TREE_H_
