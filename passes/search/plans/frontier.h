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

// Something to look at: no plan behind it takes less than `bound`.
struct SearchNode {
  enum Kind : uint8_t { kPlan, kCandidate, kGroup } kind = kGroup;
  int64_t bound = 0;
  size_t group = 0;
  size_t index = 0;   // of a candidate in its group
  int64_t key = 0;    // what it is expected to take; to prove, the bound
  int64_t seems = 0;  // of a group: what it would take if it were as it seems

  // Least first, and of one key the most exact, in a fixed order.
  bool operator>(const SearchNode& other) const {
    return std::tie(key, kind, group, index) >
           std::tie(other.key, other.kind, other.group, other.index);
  }
};

// How far plans are above their bounds: what has been seen of those of their kind.
class Experience {
 public:
  int64_t Expect(const ParallelConfig& config, int64_t bound) const;
  // Of a group that is not profiled, which seems to take that.
  int64_t ExpectOfGroup(int64_t seems) const;
  void Add(const ParallelConfig& config, int64_t step_ns, int64_t bound);

 private:
  struct Ratio {
    double sum = 0;
    int count = 0;
  };

  std::array<Ratio, 4> ratios_;
};

// First in the order of what is expected, with what is learned on the way; then, to prove, in the
// order of bounds.
class Frontier {
 public:
  bool empty() const { return queue_.empty(); }
  const SearchNode& top() const { return queue_.top(); }
  void SetTopAside();

  void PushCandidate(size_t group, size_t index, const ParallelConfig& config, int64_t bound);
  void PushPlan(size_t group, size_t index, int64_t step_ns);
  // `seems`: kNever where nothing speaks for it; then it is looked at only to prove.
  void PushGroup(size_t group, int64_t bound, int64_t seems);
  // What is looked at only to prove.
  void SetAside(const SearchNode& node) { aside_.push_back(node); }

  // Takes the top. `config`: of a candidate, its own. False where more is expected of it now than
  // when it was pushed: it has gone back into the queue.
  bool Take(const ParallelConfig& config, SearchNode* node);

  // From now on the order is that of bounds, and all that was set aside is back. Plans are gone.
  void BeginToProve();
  bool proves() const { return proves_; }

  void Learn(const ParallelConfig& config, int64_t step_ns, int64_t bound) {
    experience_.Add(config, step_ns, bound);
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
