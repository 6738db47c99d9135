// One search, within a number of bytes. First what is expected to be fastest; then, where the
// budget may suffice, whatever its bound does not rule out.

#ifndef MGC_PASSES_SEARCH_PLANS_BEST_FIRST_H_
#define MGC_PASSES_SEARCH_PLANS_BEST_FIRST_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "passes/search/plans/frontier.h"
#include "passes/search/plans/group_bounds.h"
#include "passes/search/plans/group_tree.h"
#include "passes/search/plans/plan_oracle.h"
#include "passes/search/plans/search_plans.h"
#include "passes/search/plans/variants.h"

namespace mgc {

class BestFirst {
 public:
  // Compiles `plans` more than have been, at most. `is_answer`: and as many on the ways from
  // the best to their neighbours, and the best one fits with its evaluation, too. Oracle and bounds
  // outlive it.
  BestFirst(PlanOracle& oracle, GroupBounds& bounds, int64_t memory, int64_t plans, bool is_answer);

  // The fastest plan of each mesh, fastest first, `results` at most; fewer where the budget ends.
  absl::StatusOr<std::vector<FoundPlan>> Run(size_t results);

  // After Run: no plan that is left takes less; kNever where none is.
  int64_t open_ns() const { return std::min(variants_.open_ns(), frontier_.LeastBound()); }
  // What a configuration is expected to take.
  int64_t Expect(const ParallelConfig& config, int64_t estimate) const {
    return frontier_.Expect(PlanKindOf(config), estimate);
  }
  // Of those that fit, with whatever layers; null where none is known.
  const FoundPlan* FastestOf(const ParallelConfig& candidate) const;
  const Variants& variants() const { return variants_; }

 private:
  using MeshSizes = std::tuple<int64_t, int64_t, int64_t>;
  static MeshSizes SizesOf(const ParallelConfig& config) {
    return {config.tp, config.cp, config.pp};
  }

  // Sets aside what the budget does not allow to look at; whether something is left.
  bool MayGoOn();
  bool IsAllowed(const SearchNode& node) const;
  MeshSizes MeshOf(const SearchNode& node) const;

  absl::Status Search(size_t results);
  absl::Status Visit();
  absl::Status Weigh(const SearchNode& candidate);
  // From the best plans of some meshes, each to a neighbour that is faster, until none is.
  absl::Status Climb();
  // Of the best plan.
  absl::Status TryGroupSizes();
  // One step of that, while no more than `most` plans are compiled in all; whether there is one.
  absl::StatusOr<bool> ClimbFrom(FoundPlan* at, int64_t most);
  // What a configuration is expected to take by its kind, or, where that is less, by how far the
  // best plan is from its own estimate.
  int64_t ExpectBeside(const FoundPlan& best, int64_t best_estimate, const ParallelConfig& config,
                       int64_t estimate) const;
  bool MayProve() const;
  absl::Status Prove();
  absl::Status ExpandGroup(size_t group);
  void PushFiner(size_t root, const ModelProfile* profile);
  int64_t LeastOf(const SearchNode& node) const;
  absl::Status Compile(size_t variant);
  // Whether the best plan did not fit whole, and is none any more.
  absl::StatusOr<bool> DropsBest();

  const FoundPlan& Best() const;
  int64_t BestNs() const { return fitting_.empty() ? kNever : Best().step_ns; }
  std::vector<FoundPlan> RankedByMesh(size_t results) const;

  PlanOracle& oracle_;
  GroupBounds& bounds_;
  const GroupTree& tree_;
  const int64_t memory_;
  const bool is_answer_;
  const int64_t plans_;
  const int64_t budget_;    // of all that the oracle compiles
  const int64_t profiles_;  // likewise
  Frontier frontier_;
  Variants variants_;
  std::set<size_t> expanded_;       // groups
  std::set<MeshSizes> meshes_;      // whose fastest plan is known, as far as expected
  std::vector<FoundPlan> fitting_;  // all that were compiled
};

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_BEST_FIRST_H_
