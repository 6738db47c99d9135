// What a search has yet to look at, in the order in which it does.

#ifndef MGC_PASSES_SEARCH_PLANS_FRONTIER_H_
#define MGC_PASSES_SEARCH_PLANS_FRONTIER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <vector>

#include "passes/config/parallel_config.h"

namespace mgc {

// Longer than any step.
inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// Plans that are about as far above their estimates: by chunks a rank and ZeRO level.
using PlanKind = uint8_t;
inline constexpr size_t kNumPlanKinds = 6;
PlanKind PlanKindOf(int64_t vp, int64_t zero);
inline PlanKind PlanKindOf(const ParallelConfig& config) {
  return PlanKindOf(config.vp, config.zero);
}

// Something to look at: no plan behind it takes less than `bound`.
struct SearchNode {
  // A variant is a candidate with layers chosen for its stages.
  enum Kind : uint8_t { kPlan, kVariant, kCandidate, kGroup } kind = kGroup;
  PlanKind plan_kind = 0;
  int64_t bound = 0;
  size_t group = 0;
  size_t index = 0;   // of a candidate in its group; of a variant or a plan, among all variants
  int64_t key = 0;    // what it is expected to take; to prove, the bound
  int64_t seems = 0;  // what it would take if it were as it seems
  // Of a candidate: what it computes again for want of memory is part of that.
  bool weighed = false;

  // Least first, and of one key the most exact, in a fixed order.
  bool operator>(const SearchNode& other) const {
    return std::tie(key, kind, group, index) >
           std::tie(other.key, other.kind, other.group, other.index);
  }
};

// How far plans are above their estimates: what has been seen of those of their kind.
class Experience {
 public:
  int64_t Expect(PlanKind kind, int64_t estimate) const;
  // Of a group that is not profiled, which seems to take that.
  int64_t ExpectOfGroup(int64_t seems) const;
  void Add(PlanKind kind, int64_t step_ns, int64_t estimate);

 private:
  struct Ratio {
    double sum = 0;
    int count = 0;
  };

  std::array<Ratio, kNumPlanKinds> ratios_;
};

// First in the order of what is expected, with what is learned on the way; then, to prove, in the
// order of bounds.
class Frontier {
 public:
  bool empty() const { return queue_.empty(); }
  const SearchNode& top() const { return queue_.top(); }
  void SetTopAside();

  // `bound`: of all plans behind it; `seems`: of the likely ones, a bound or an estimate.
  void PushCandidate(size_t group, size_t index, PlanKind kind, int64_t bound, int64_t seems,
                     bool weighed);
  void PushVariant(size_t variant, PlanKind kind, int64_t bound, int64_t seems);
  void PushPlan(size_t variant, int64_t step_ns);
  // `seems`: kNever where nothing speaks for it; then it is looked at only to prove.
  void PushGroup(size_t group, int64_t bound, int64_t seems);
  // What is looked at only to prove.
  void SetAside(const SearchNode& node) { aside_.push_back(node); }

  // Takes the top. False where more is expected of it now than when it was pushed: it has gone back
  // into the queue.
  bool Take(SearchNode* node);

  // From now on the order is that of bounds, and all that was set aside is back. Plans are gone.
  void BeginToProve();
  bool proves() const { return proves_; }

  void Learn(PlanKind kind, int64_t step_ns, int64_t estimate) {
    experience_.Add(kind, step_ns, estimate);
  }

  // What a plan of this kind and estimate is expected to take.
  int64_t Expect(PlanKind kind, int64_t estimate) const {
    return experience_.Expect(kind, estimate);
  }

  // No plan that is left takes less. In the order of bounds only.
  int64_t LeastBound() const;

 private:
  std::priority_queue<SearchNode, std::vector<SearchNode>, std::greater<SearchNode>> queue_;
  std::vector<SearchNode> aside_;
  Experience experience_;
  bool proves_ = false;
};

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_FRONTIER_H_
