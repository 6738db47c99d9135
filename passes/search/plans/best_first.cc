#include "passes/search/plans/best_first.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "graph/base/status.h"
#include "passes/config/check_config.h"
#include "passes/config/config_flags.h"
#include "passes/plan/time/cost.h"

namespace mgc {
namespace {

// A neighbour is compiled that is expected to be slower by no more than one part in so many, and of
// one plan no more than so many are.
constexpr int64_t kNear = 32;
constexpr size_t kMostNeighbours = 3;
// The search climbs from the fastest plans of so many meshes.
constexpr size_t kStarts = 3;
// A profile takes as long as a small part of a plan.
constexpr int64_t kProfilesAPlan = 4;

bool IsFaster(const FoundPlan& a, const FoundPlan& b) { return a.step_ns < b.step_ns; }

}  // namespace

BestFirst::BestFirst(PlanOracle& oracle, GroupBounds& bounds, int64_t memory, int64_t plans,
                     bool is_answer)
    : oracle_(oracle),
      bounds_(bounds),
      tree_(bounds.tree()),
      memory_(memory),
      is_answer_(is_answer),
      plans_(plans),
      budget_(oracle.compiled() + plans),
      profiles_(oracle.profiled() + kProfilesAPlan * plans),
      variants_(oracle, frontier_, memory) {
  for (const size_t g : tree_.roots()) frontier_.PushGroup(g, 0, 0);
  for (const FoundPlan& plan : oracle.Compiled()) {
    if (plan.peak_bytes <= memory) fitting_.push_back(plan);
  }
}

absl::StatusOr<std::vector<FoundPlan>> BestFirst::Run(size_t results) {
  for (bool again = true; again;) {
    MGC_RETURN_IF_ERROR(Search(results));
    MGC_ASSIGN_OR_RETURN(again, DropsBest());
  }
  frontier_.BeginToProve();  // whose order of bounds open_ns needs too
  for (bool again = MayProve(); again;) {
    MGC_RETURN_IF_ERROR(Prove());
    MGC_ASSIGN_OR_RETURN(again, DropsBest());
  }
  return RankedByMesh(results);
}

absl::Status BestFirst::Search(size_t results) {
  while (meshes_.size() < results && MayGoOn()) {
    MGC_RETURN_IF_ERROR(Visit());
  }
  if (!is_answer_ || fitting_.empty()) return absl::OkStatus();
  MGC_RETURN_IF_ERROR(Climb());
  return TryGroupSizes();
}

// More micro-batches that pass a chunk in a row are more in flight, and wait less for each other.
absl::Status BestFirst::TryGroupSizes() {
  const FoundPlan best = Best();
  if (best.config.vp <= 1 || best.config.group_size > 0) return absl::OkStatus();
  if (oracle_.request().fixed.chunks) return absl::OkStatus();
  const CheckedConfig checked = CheckConfig(best.config, oracle_.request().dims);
  for (const int64_t size : {checked.group_size + checked.group_size / 2, 2 * checked.group_size}) {
    ParallelConfig config = best.config;
    config.group_size = size;
    if (!CheckConfig(config, oracle_.request().dims).violations.empty()) continue;
    MGC_ASSIGN_OR_RETURN(const auto bound,
                         oracle_.BoundOf(oracle_.space().GroupOf(best.config), config));
    if (!bound.has_value() || bound->peak_bytes > memory_) continue;
    MGC_ASSIGN_OR_RETURN(const FoundPlan* plan, oracle_.PlanOf(config));
    if (plan != nullptr && plan->peak_bytes <= memory_) fitting_.push_back(*plan);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> BestFirst::DropsBest() {
  if (!is_answer_ || fitting_.empty()) return false;
  const auto best = std::min_element(fitting_.begin(), fitting_.end(), IsFaster);
  // Far from the limit evaluation's boundaries make no difference.
  if (best->peak_bytes <= memory_ - memory_ / 8) return false;
  MGC_ASSIGN_OR_RETURN(*best, oracle_.WholeOf(*best));
  if (best->peak_bytes <= memory_) return false;
  const FoundPlan dropped = *best;
  fitting_.erase(best);
  meshes_.erase(SizesOf(dropped.config));
  const absl::optional<size_t> variant = variants_.Find(dropped.config);
  if (variant.has_value()) MGC_RETURN_IF_ERROR(variants_.NeedsMore(*variant, dropped));
  return true;
}

std::vector<FoundPlan> BestFirst::RankedByMesh(size_t results) const {
  std::vector<FoundPlan> plans = fitting_;
  std::stable_sort(plans.begin(), plans.end(), IsFaster);
  std::vector<FoundPlan> ranked;
  std::set<MeshSizes> meshes;
  for (const FoundPlan& plan : plans) {
    if (ranked.size() >= results) break;
    if (meshes.insert(SizesOf(plan.config)).second) ranked.push_back(plan);
  }
  return ranked;
}

const FoundPlan* BestFirst::FastestOf(const ParallelConfig& candidate) const {
  const FoundPlan* fastest = nullptr;
  for (const FoundPlan& plan : fitting_) {
    ParallelConfig config = plan.config;
    config.layout = candidate.layout;
    config.recompute = candidate.recompute;
    if (FlagsText(config) != FlagsText(candidate)) continue;
    if (fastest == nullptr || IsFaster(plan, *fastest)) fastest = &plan;
  }
  return fastest;
}

const FoundPlan& BestFirst::Best() const {
  return *std::min_element(fitting_.begin(), fitting_.end(), IsFaster);
}

bool BestFirst::MayGoOn() {
  while (!frontier_.empty() && !IsAllowed(frontier_.top())) frontier_.SetTopAside();
  return !frontier_.empty();
}

bool BestFirst::IsAllowed(const SearchNode& node) const {
  switch (node.kind) {
    case SearchNode::kPlan:
      return true;
    case SearchNode::kVariant:
      return oracle_.compiled() < budget_ || oracle_.IsCompiled(variants_.At(node.index).config);
    case SearchNode::kCandidate:
      return oracle_.compiled() < budget_;
    case SearchNode::kGroup:
      return oracle_.profiled() < profiles_ || oracle_.KnownProfile(node.group) != nullptr;
  }
  return true;
}

BestFirst::MeshSizes BestFirst::MeshOf(const SearchNode& node) const {
  return SizesOf(node.kind == SearchNode::kCandidate
                     ? oracle_.space().ConfigOf(node.group, node.index)
                     : variants_.At(node.index).config);
}

absl::Status BestFirst::Visit() {
  SearchNode node;
  if (!frontier_.Take(&node)) return absl::OkStatus();
  if (node.kind == SearchNode::kGroup) return ExpandGroup(node.group);
  const MeshSizes mesh = MeshOf(node);
  const bool is_known = meshes_.count(mesh) > 0;
  if (node.kind == SearchNode::kCandidate && !node.weighed && !is_known) return Weigh(node);
  if (node.kind == SearchNode::kPlan) {
    meshes_.insert(mesh);
    return absl::OkStatus();
  }
  // Of a mesh whose fastest plan is known others are of interest only to prove that; so is
  // whether a candidate has faster variants than the one that is chosen.
  if (node.kind == SearchNode::kCandidate || is_known) frontier_.SetAside(node);
  if (is_known) return absl::OkStatus();
  if (node.kind == SearchNode::kVariant) {
    // What has been learned since layers were chosen for it may say that they do not fit.
    const Variant& variant = variants_.At(node.index);
    const bool fits = variant.bound.peak_bytes <= variants_.BytesFor(variant.config);
    return fits ? Compile(node.index) : variants_.Choose(variant.group, variant.index);
  }
  return variants_.Choose(node.group, node.index);
}

// Puts it back with what memory asks for.
absl::Status BestFirst::Weigh(const SearchNode& candidate) {
  const ParallelConfig config = oracle_.space().ConfigOf(candidate.group, candidate.index);
  const int64_t bytes = variants_.BytesFor(config);
  MGC_ASSIGN_OR_RETURN(const int64_t again,
                       oracle_.RecomputedNs(candidate.group, candidate.index, bytes));
  frontier_.PushCandidate(candidate.group, candidate.index, candidate.plan_kind, candidate.bound,
                          Later(candidate.seems, again), true);
  return absl::OkStatus();
}

absl::Status BestFirst::Climb() {
  std::set<std::string> from;  // by flags
  for (const FoundPlan& start : RankedByMesh(kStarts)) {
    const int64_t most = oracle_.compiled() + std::max<int64_t>(plans_ / 3, 1);
    FoundPlan at = start;
    for (bool climbs = true; climbs && from.insert(FlagsText(at.config)).second;) {
      MGC_ASSIGN_OR_RETURN(climbs, ClimbFrom(&at, most));
    }
  }
  return absl::OkStatus();
}

// To the first neighbour that is faster, in the order in which that is expected of them.
absl::StatusOr<bool> BestFirst::ClimbFrom(FoundPlan* at, int64_t most) {
  std::vector<std::pair<int64_t, ParallelConfig>> near;  // by what they are expected to take
  const size_t own_group = oracle_.space().GroupOf(at->config);
  MGC_ASSIGN_OR_RETURN(const int64_t own, oracle_.EstimateOf(own_group, at->config));
  for (const auto& [group, index] : NeighboursOf(oracle_.space(), at->config)) {
    MGC_ASSIGN_OR_RETURN(const ModelProfile* profile, oracle_.ProfileOf(group));
    if (profile == nullptr) continue;
    if (bounds_.Of(group, *profile)[index].least_ns >= at->step_ns) continue;
    // Other cuts save little of what even stages take, and what is computed again takes more.
    const ParallelConfig even = oracle_.space().ConfigOf(group, index);
    MGC_ASSIGN_OR_RETURN(const int64_t even_estimate, oracle_.EstimateOf(group, even));
    const int64_t even_ns = ExpectBeside(*at, own, even, even_estimate);
    if (even_ns > at->step_ns + 2 * (at->step_ns / kNear)) continue;
    MGC_ASSIGN_OR_RETURN(const auto choice, variants_.ChoiceFor(group, index));
    if (!choice.has_value() || choice->bound.step_ns >= at->step_ns) continue;
    const int64_t expected = ExpectBeside(*at, own, choice->config, choice->estimate_ns);
    if (expected <= at->step_ns + at->step_ns / kNear) near.emplace_back(expected, choice->config);
  }
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (near.size() > kMostNeighbours) near.resize(kMostNeighbours);
  for (const auto& [expected, config] : near) {
    if (oracle_.compiled() >= most && !oracle_.IsCompiled(config)) continue;
    MGC_ASSIGN_OR_RETURN(const FoundPlan* plan, oracle_.PlanOf(config));
    if (plan == nullptr || plan->peak_bytes > memory_) continue;
    fitting_.push_back(*plan);
    if (!IsFaster(*plan, *at)) continue;
    *at = *plan;
    return true;
  }
  return false;
}

int64_t BestFirst::ExpectBeside(const FoundPlan& best, int64_t best_estimate,
                                const ParallelConfig& config, int64_t estimate) const {
  const int64_t by_kind = frontier_.Expect(PlanKindOf(config), estimate);
  if (best_estimate <= 0) return by_kind;
  const double ratio = static_cast<double>(best.step_ns) / static_cast<double>(best_estimate);
  return std::min<int64_t>(by_kind, std::llround(ratio * static_cast<double>(estimate)));
}

// Whether the budget suffices for the profiles of all groups, of which some may rule out the
// rest; or nothing has been found so far.
bool BestFirst::MayProve() const {
  return fitting_.empty() ||
         static_cast<int64_t>(oracle_.space().groups.size()) <= kProfilesAPlan * budget_;
}

// Looks at all that may be faster than the best, in the order of bounds.
absl::Status BestFirst::Prove() {
  while (MayGoOn() && frontier_.top().bound < BestNs()) {
    SearchNode node;
    frontier_.Take(&node);
    if (node.kind == SearchNode::kVariant) {
      MGC_RETURN_IF_ERROR(Compile(node.index));
    } else if (node.kind == SearchNode::kCandidate) {
      MGC_RETURN_IF_ERROR(variants_.Expand(node));
    } else if (const int64_t bound = LeastOf(node); bound > node.bound) {
      frontier_.PushGroup(node.group, bound, bound);
    } else {
      MGC_RETURN_IF_ERROR(ExpandGroup(node.group));
    }
  }
  return absl::OkStatus();
}

// The bound of a group by all that has been profiled since.
int64_t BestFirst::LeastOf(const SearchNode& node) const {
  int64_t bound = node.bound;
  if (expanded_.count(node.group) > 0) return bound;
  for (const size_t g : expanded_) {
    const std::vector<size_t>& finer = tree_.FinerThan(g);
    if (std::find(finer.begin(), finer.end(), node.group) == finer.end()) continue;
    const ModelProfile* profile = oracle_.KnownProfile(g);
    if (profile != nullptr) bound = std::max(bound, tree_.LeastStepNs(*profile, g, node.group));
  }
  return bound;
}

absl::Status BestFirst::ExpandGroup(size_t g) {
  if (!expanded_.insert(g).second) return absl::OkStatus();
  MGC_ASSIGN_OR_RETURN(const ModelProfile* profile, oracle_.ProfileOf(g));
  const std::vector<size_t>& roots = tree_.roots();
  if (std::find(roots.begin(), roots.end(), g) != roots.end()) PushFiner(g, profile);
  if (profile == nullptr) return absl::OkStatus();
  const std::vector<CandidateBound>& bounds = bounds_.Of(g, *profile);
  for (size_t i = 0; i < bounds.size(); ++i) {
    const CandidateBound& even = bounds[i];
    const Candidate& candidate = oracle_.space().groups[g].candidates[i];
    if (even.held_bytes > memory_) {
      variants_.NoteTooLarge(oracle_.space().ConfigOf(g, i), even.held_bytes);
    } else {
      const PlanKind kind = PlanKindOf(candidate.vp, candidate.zero);
      const bool fits = even.peak_bytes <= memory_;
      frontier_.PushCandidate(g, i, kind, even.least_ns, even.step_ns, fits);
    }
  }
  return absl::OkStatus();
}

void BestFirst::PushFiner(size_t root, const ModelProfile* profile) {
  for (const size_t g : tree_.FinerThan(root)) {
    if (profile == nullptr) {
      frontier_.PushGroup(g, 0, kNever);
      continue;
    }
    int64_t seems = kNever;
    for (const CandidateBound& even : bounds_.Expected(g, root, *profile)) {
      if (even.peak_bytes <= memory_) seems = std::min(seems, even.step_ns);
    }
    frontier_.PushGroup(g, tree_.LeastStepNs(*profile, root, g), seems);
  }
}

absl::Status BestFirst::Compile(size_t v) {
  const Variant variant = variants_.At(v);
  MGC_ASSIGN_OR_RETURN(const FoundPlan* plan, oracle_.PlanOf(variant.config));
  if (plan == nullptr) return absl::OkStatus();
  frontier_.Learn(PlanKindOf(plan->config), plan->step_ns, variant.estimate_ns);
  if (plan->peak_bytes > memory_) return variants_.NeedsMore(v, *plan);
  fitting_.push_back(*plan);
  if (!frontier_.proves()) frontier_.PushPlan(v, plan->step_ns);
  return absl::OkStatus();
}

}  // namespace mgc
