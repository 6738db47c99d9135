#include "passes/search/plans/group_tree.h"

#include <algorithm>
#include <map>

#include "absl/types/optional.h"
#include "passes/plan/time/cost.h"

namespace mgc {
namespace {

int64_t SmallestPrime(int64_t number) {
  for (int64_t p = 2; p * p <= number; ++p) {
    if (number % p == 0) return p;
  }
  return number;
}

// The group that one with these choices is behind.
absl::optional<ProfileKey> ParentOf(ProfileKey key) {
  if (key.recompute != RecomputeKind::kNone) {
    key.recompute = RecomputeKind::kNone;
  } else if (key.cp > 1) {
    key.cp /= SmallestPrime(key.cp);
  } else if (key.tp > 1) {
    key.tp /= SmallestPrime(key.tp);
    key.sequence_parallel = key.sequence_parallel && key.tp > 1;
  } else {
    return absl::nullopt;
  }
  return key;
}

}  // namespace

GroupTree::GroupTree(const std::vector<CandidateGroup>& groups)
    : groups_(groups), finer_(groups.size()), recomputed_(groups.size()) {
  std::map<ProfileKey, size_t> by_key;
  for (size_t g = 0; g < groups.size(); ++g) by_key[groups[g].key] = g;
  for (size_t g = 0; g < groups.size(); ++g) {
    const ProfileKey& key = groups[g].key;
    const absl::optional<ProfileKey> parent = ParentOf(key);
    const auto found = parent.has_value() ? by_key.find(*parent) : by_key.end();
    if (found == by_key.end()) {
      roots_.push_back(g);
    } else if (key.recompute != found->first.recompute) {
      recomputed_[found->second].push_back(g);
    } else {
      finer_[found->second].push_back(g);
    }
  }
}

int64_t GroupTree::LeastStepNs(const ModelProfile& profile, size_t group, size_t finer,
                               const Machine& machine) const {
  const ProfileKey& from = groups_[group].key;
  const ProfileKey& to = groups_[finer].key;
  const ParallelConfig& config = groups_[finer].candidates.front();
  double compute = 0;
  double exposed = 0;
  for (const LayerProfile& layer : profile.layers) {
    const int64_t waits = layer.forward_ns + layer.backward_ns - layer.compute_ns;
    compute += static_cast<double>(layer.compute_ns);
    exposed +=
        static_cast<double>(machine.cores > 0 ? layer.queue_ns : std::max<int64_t>(waits, 0));
  }
  const auto group_ranks = static_cast<double>(to.tp * to.cp);
  const auto parts = group_ranks / static_cast<double>(from.tp * from.cp);
  const double samples =
      static_cast<double>(config.global_batch_size) / static_cast<double>(to.micro_batch_size);
  const double spread = static_cast<double>(machine.cores > 0 ? machine.cores : config.world_size);
  const double ns = (compute / parts + exposed) * samples * group_ranks / spread;
  return static_cast<int64_t>(std::min(ns, static_cast<double>(kMaxNs)));
}

}  // namespace mgc
