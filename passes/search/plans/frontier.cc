#include "passes/search/plans/frontier.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace mgc {
namespace {

// What is not profiled is less promising than it seems.
constexpr double kUnknown = 1.1;

int64_t Rounded(double ns) {
  constexpr double kMost = 4e18;  // of an int64
  return std::llround(std::min(ns, kMost));
}

}  // namespace

PlanKind PlanKindOf(int64_t vp, int64_t zero) {
  const int chunks = vp > 2 ? 2 : vp > 1 ? 1 : 0;
  return static_cast<PlanKind>(chunks + (zero >= 2 ? 3 : 0));
}

int64_t Experience::Expect(PlanKind kind, int64_t estimate) const {
  const Ratio& ratio = ratios_[kind];
  if (ratio.count == 0) return estimate;
  return Rounded(static_cast<double>(estimate) * ratio.sum / ratio.count);
}

int64_t Experience::ExpectOfGroup(int64_t seems) const {
  Ratio all;
  for (const Ratio& ratio : ratios_) {
    all.sum += ratio.sum;
    all.count += ratio.count;
  }
  const double ratio = all.count == 0 ? 1 : all.sum / all.count;
  return Rounded(kUnknown * ratio * static_cast<double>(seems));
}

void Experience::Add(PlanKind kind, int64_t step_ns, int64_t estimate) {
  if (estimate == 0) return;
  Ratio& ratio = ratios_[kind];
  ratio.sum += static_cast<double>(step_ns) / static_cast<double>(estimate);
  ++ratio.count;
}

void Frontier::SetTopAside() {
  aside_.push_back(queue_.top());
  queue_.pop();
}

void Frontier::PushCandidate(size_t group, size_t index, PlanKind kind, int64_t bound,
                             int64_t seems, bool weighed) {
  const int64_t key = proves_ ? bound : experience_.Expect(kind, seems);
  queue_.push({SearchNode::kCandidate, kind, bound, group, index, key, seems, weighed});
}

void Frontier::PushVariant(size_t variant, PlanKind kind, int64_t bound, int64_t seems) {
  const int64_t key = proves_ ? bound : experience_.Expect(kind, seems);
  queue_.push({SearchNode::kVariant, kind, bound, 0, variant, key, seems});
}

void Frontier::PushPlan(size_t variant, int64_t step_ns) {
  queue_.push({SearchNode::kPlan, 0, step_ns, 0, variant, step_ns, step_ns});
}

void Frontier::PushGroup(size_t group, int64_t bound, int64_t seems) {
  SearchNode node{SearchNode::kGroup, 0, bound, group, 0, bound, seems};
  if (!proves_ && seems == kNever) {
    aside_.push_back(node);
    return;
  }
  if (!proves_) node.key = experience_.ExpectOfGroup(seems);
  queue_.push(node);
}

bool Frontier::Take(SearchNode* node) {
  *node = queue_.top();
  queue_.pop();
  if (proves_ || node->kind == SearchNode::kPlan) return true;
  const bool is_group = node->kind == SearchNode::kGroup;
  const int64_t now = is_group ? experience_.ExpectOfGroup(node->seems)
                               : experience_.Expect(node->plan_kind, node->seems);
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
