// Which groups of candidates say something of others before those are profiled.
//
//   tp 1   ->  tp 2, cp 2, tp 4 ...   the same work on more ranks, with no less communication

#ifndef MGC_PASSES_SEARCH_PLANS_GROUP_TREE_H_
#define MGC_PASSES_SEARCH_PLANS_GROUP_TREE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/types/machine.h"
#include "graph/types/model_dims.h"
#include "passes/search/plans/model_profile.h"
#include "passes/search/plans/search_space.h"

namespace mgc {

class GroupTree {
 public:
  // Both outlive it.
  GroupTree(const SearchSpace& space, const ModelDims& dims, const Machine& machine);

  // Of every micro-batch size the group with the fewest ranks.
  const std::vector<size_t>& roots() const { return roots_; }
  // Those that cut finer than `group`, of the same micro-batch.
  const std::vector<size_t>& FinerThan(size_t group) const { return finer_[group]; }

  // No step of `finer` takes less: the compute of `group`, spread evenly over all ranks, and the
  // communication that it leaves exposed. `finer` may be `group` itself.
  int64_t LeastStepNs(const ModelProfile& profile, size_t group, size_t finer) const;

  // What the profile of `finer` may be like: compute and memory cut evenly; exposed is as much as
  // in `group`, by what a transformer's layers exchange over tp and cp: four all-reduces of the
  // stream, three gathers of keys and values. An expectation, no bound.
  ModelProfile Expect(const ModelProfile& profile, size_t group, size_t finer) const;

 private:
  // What a layer exchanges over tp and cp, of a stream of so many bytes of whole sequences.
  int64_t TensorNs(const ProfileKey& key, int64_t stream) const;
  int64_t ContextNs(const ProfileKey& key, int64_t stream) const;

  const std::vector<CandidateGroup>& groups_;
  const int64_t world_size_;
  const int64_t global_batch_size_;
  const Machine& machine_;
  const double kv_share_;  // heads of keys and values of all heads
  std::vector<size_t> roots_;
  std::vector<std::vector<size_t>> finer_;
};

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_GROUP_TREE_H_
