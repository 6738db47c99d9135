#include "passes/search/plans/frontier.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace mgc {
namespace {

// What is not profiled is less promising than it seems.
constexpr double kUnknown = 1.1;

size_t KindOf(const ParallelConfig& config) {
  return (config.vp > 1 ? 1 : 0) + (config.zero >= 2 ? 2 : 0);
}

}  // namespace

int64_t Experience::Expect(const ParallelConfig& config, int64_t bound) const {
  const Ratio& ratio = ratios_[KindOf(config)];
  if (ratio.count == 0) return bound;
  return std::llround(static_cast<double>(bound) * ratio.sum / ratio.count);
}

int64_t Experience::ExpectOfGroup(int64_t seems) const {
  Ratio all;
  for (const Ratio& ratio : ratios_) {
    all.sum += ratio.sum;
    all.count += ratio.count;
  }
  const double ratio = all.count == 0 ? 1 : all.sum / all.count;
  constexpr double kMost = 4e18;  // of an int64
  return std::llround(std::min(kUnknown * ratio * static_cast<double>(seems), kMost));
}

void Experience::Add(const ParallelConfig& config, int64_t step_ns, int64_t bound) {
  if (bound == 0) return;
  Ratio& ratio = ratios_[KindOf(config)];
  ratio.sum += static_cast<double>(step_ns) / static_cast<double>(bound);
  ++ratio.count;
}

void Frontier::SetTopAside() {
  aside_.push_back(queue_.top());
  queue_.pop();
}

void Frontier::PushCandidate(size_t group, size_t index, const ParallelConfig& config,
                             int64_t bound) {
  const int64_t key = proves_ ? bound : experience_.Expect(config, bound);
  queue_.push({SearchNode::kCandidate, bound, group, index, key, 0});
}

void Frontier::PushPlan(size_t group, size_t index, int64_t step_ns) {
  queue_.push({SearchNode::kPlan, step_ns, group, index, step_ns, 0});
}

void Frontier::PushGroup(size_t group, int64_t bound, int64_t seems) {
  SearchNode node{SearchNode::kGroup, bound, group, 0, bound, seems};
  if (!proves_ && seems == kNever) {
    aside_.push_back(node);
    return;
  }
  if (!proves_) node.key = experience_.ExpectOfGroup(seems);
  queue_.push(node);
}

bool Frontier::Take(const ParallelConfig& config, SearchNode* node) {
  *node = queue_.top();
  queue_.pop();
  if (proves_ || node->kind == SearchNode::kPlan) return true;
  const bool is_group = node->kind == SearchNode::kGroup;
  const int64_t now =
      is_group ? experience_.ExpectOfGroup(node->seems) : experience_.Expect(config, node->bound);
  if (now <= node->key) return true;
  SearchNode later = *node;
  later.key = now;
  queue_.push(later);
  return false;
}

void Frontier::BeginToProve() {
  proves_ = true;
  std::vector<SearchNode> open = std::move(aside_);
  aside_.clear();
  for (; !queue_.empty(); queue_.pop()) open.push_back(queue_.top());
  for (SearchNode& node : open) {
    node.key = node.bound;
    if (node.kind != SearchNode::kPlan) queue_.push(node);
  }
}

int64_t Frontier::LeastBound() const {
  int64_t least = queue_.empty() ? kNever : queue_.top().bound;
  for (const SearchNode& node : aside_) least = std::min(least, node.bound);
  return least;
}

}  // namespace mgc
