#include "passes/search/plans/search_plans.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/base/units.h"
#include "passes/config/config_flags.h"
#include "passes/search/plans/frontier.h"
#include "passes/search/plans/group_tree.h"
#include "passes/search/plans/layer_variants.h"
#include "passes/search/plans/plan_oracle.h"

namespace mgc {
namespace {

// Of the front each point has at most this share of the memory of the one before.
constexpr double kLessMemory = 0.8;
constexpr size_t kMostOfFront = 5;
// A neighbour is compiled that is expected to be slower by no more than one part in so many.
constexpr int64_t kNear = 16;
// A profile takes as long as a small part of a plan.
constexpr int64_t kProfilesAPlan = 4;

// Plans differ by what they are spread over.
using MeshSizes = std::tuple<int64_t, int64_t, int64_t>;
MeshSizes SizesOf(const ParallelConfig& config) { return {config.tp, config.cp, config.pp}; }

bool IsFaster(const FoundPlan& a, const FoundPlan& b) { return a.step_ns < b.step_ns; }

// The fastest plan of each mesh, fastest first.
std::vector<FoundPlan> RankedByMesh(std::vector<FoundPlan> plans, size_t results) {
  std::stable_sort(plans.begin(), plans.end(), IsFaster);
  std::vector<FoundPlan> ranked;
  std::set<MeshSizes> meshes;
  for (const FoundPlan& plan : plans) {
    if (ranked.size() >= results) break;
    if (meshes.insert(SizesOf(plan.config)).second) ranked.push_back(plan);
  }
  return ranked;
}

// One search, within a number of bytes. First what is expected to be fastest; then, where the
// budget may suffice, whatever its bound does not rule out.
class BestFirst {
 public:
  // Compiles `plans` more than have been, at most, and twice as many on the way from the best to
  // its neighbours.
  BestFirst(PlanOracle& oracle, const GroupTree& tree, int64_t memory, int64_t plans)
      : oracle_(oracle),
        tree_(tree),
        memory_(memory),
        plans_(plans),
        budget_(oracle.compiled() + plans) {
    for (const size_t g : tree.roots()) frontier_.PushGroup(g, 0, 0);
  }

  // The fastest plan of each mesh, fastest first, `results` at most; fewer where the budget ends.
  absl::StatusOr<std::vector<FoundPlan>> Run(size_t results) {
    while (meshes_.size() < results && MayGoOn()) {
      MGC_RETURN_IF_ERROR(Visit());
    }
    MGC_RETURN_IF_ERROR(Climb());
    frontier_.BeginToProve();  // whose order of bounds open_ns needs too
    if (MayProve()) MGC_RETURN_IF_ERROR(Prove());
    return RankedByMesh(fitting_, results);
  }

  // After Run: no plan that is left takes less; kNever where none is.
  int64_t open_ns() const { return std::min(open_ns_, frontier_.LeastBound()); }
  // What a configuration of a group is expected to take.
  absl::StatusOr<int64_t> Expect(PlanOracle& oracle, size_t group,
                                 const ParallelConfig& config) const {
    MGC_ASSIGN_OR_RETURN(const int64_t estimate, oracle.EstimateOf(group, config));
    return frontier_.Expect(PlanKindOf(config), estimate);
  }
  // Of those that fit, with whatever layers; null where none is known.
  const FoundPlan* FastestOf(const ParallelConfig& candidate) const {
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
  int64_t too_large() const { return too_large_; }
  int64_t least_peak() const { return least_peak_; }
  const ParallelConfig& least_peak_config() const { return least_peak_config_; }

 private:
  // A candidate with layers chosen for its stages.
  struct Variant {
    size_t group = 0;
    size_t index = 0;  // of the candidate
    ParallelConfig config;
    PlanBound bound;
    int64_t within = 0;  // the bytes that layers were chosen for
    int64_t estimate_ns = 0;
  };

  // Sets aside what the budget does not allow to look at; whether something is left.
  bool MayGoOn() {
    while (!frontier_.empty() && !IsAllowed(frontier_.top())) frontier_.SetTopAside();
    return !frontier_.empty();
  }
  bool IsAllowed(const SearchNode& node) const {
    switch (node.kind) {
      case SearchNode::kPlan:
        return true;
      case SearchNode::kVariant:
        return oracle_.compiled() < budget_ || oracle_.IsCompiled(variants_[node.index].config);
      case SearchNode::kCandidate:
        return oracle_.compiled() < budget_;
      case SearchNode::kGroup:
        return oracle_.profiled() < kProfilesAPlan * budget_ ||
               oracle_.KnownProfile(node.group) != nullptr;
    }
    return true;
  }
  MeshSizes MeshOf(const SearchNode& node) const {
    return SizesOf(node.kind == SearchNode::kCandidate
                       ? oracle_.space().ConfigOf(node.group, node.index)
                       : variants_[node.index].config);
  }

  absl::Status Visit() {
    SearchNode node;
    if (!frontier_.Take(&node)) return absl::OkStatus();
    if (node.kind == SearchNode::kGroup) return ExpandGroup(node.group);
    const MeshSizes mesh = MeshOf(node);
    if (node.kind == SearchNode::kPlan) {
      meshes_.insert(mesh);
      return absl::OkStatus();
    }
    // Of a mesh whose fastest plan is known others are of interest only to prove that; so is
    // whether a candidate has faster variants than the one that is chosen.
    if (node.kind == SearchNode::kCandidate || meshes_.count(mesh) > 0) frontier_.SetAside(node);
    if (meshes_.count(mesh) > 0) return absl::OkStatus();
    if (node.kind == SearchNode::kVariant) return Compile(node.index);
    return ChooseVariant(node.group, node.index, memory_);
  }

  // Of a candidate the variant that is likely to be its fastest within so many bytes.
  absl::Status ChooseVariant(size_t group, size_t index, int64_t within) {
    MGC_ASSIGN_OR_RETURN(const auto choice, oracle_.ChooseFor(group, index, within));
    if (!choice.has_value()) {
      ++too_large_;
      return absl::OkStatus();
    }
    return PushVariant({group, index, choice->config, choice->bound, within});
  }
  absl::Status PushVariant(Variant variant) {
    MGC_ASSIGN_OR_RETURN(variant.estimate_ns, oracle_.EstimateOf(variant.group, variant.config));
    frontier_.PushVariant(variants_.size(), PlanKindOf(variant.config), variant.bound.step_ns,
                          std::max(variant.bound.step_ns, variant.estimate_ns));
    variants_.push_back(std::move(variant));
    return absl::OkStatus();
  }

  // From the best plan to the first neighbour that is faster, until none is.
  absl::Status Climb() {
    const int64_t most = oracle_.compiled() + 2 * plans_;
    for (bool climbs = !fitting_.empty(); climbs;) {
      climbs = false;
      const FoundPlan best = Best();
      for (const auto& [group, index] : NeighboursOf(oracle_.space(), best.config)) {
        if (climbs || oracle_.compiled() >= most) continue;
        MGC_ASSIGN_OR_RETURN(const auto choice, oracle_.ChooseFor(group, index, memory_));
        if (!choice.has_value() || choice->bound.step_ns >= best.step_ns) continue;
        MGC_ASSIGN_OR_RETURN(const int64_t expected, Expect(oracle_, group, choice->config));
        if (expected > best.step_ns + best.step_ns / kNear) continue;
        MGC_ASSIGN_OR_RETURN(const FoundPlan* plan, oracle_.PlanOf(choice->config));
        if (plan == nullptr || plan->peak_bytes > memory_) continue;
        climbs = IsFaster(*plan, best);
        fitting_.push_back(*plan);
      }
    }
    return absl::OkStatus();
  }

  // Whether the budget suffices for the profiles of all groups, of which some may rule out the
  // rest; or nothing has been found so far.
  bool MayProve() const {
    return fitting_.empty() ||
           static_cast<int64_t>(oracle_.space().groups.size()) <= kProfilesAPlan * budget_;
  }

  // Looks at all that may be faster than the best, in the order of bounds.
  absl::Status Prove() {
    while (MayGoOn() && frontier_.top().bound < BestNs()) {
      SearchNode node;
      frontier_.Take(&node);
      if (node.kind == SearchNode::kVariant) {
        MGC_RETURN_IF_ERROR(Compile(node.index));
      } else if (node.kind == SearchNode::kCandidate) {
        MGC_RETURN_IF_ERROR(ExpandCandidate(node));
      } else if (const int64_t bound = LeastOf(node); bound > node.bound) {
        frontier_.PushGroup(node.group, bound, bound);
      } else {
        MGC_RETURN_IF_ERROR(ExpandGroup(node.group));
      }
    }
    return absl::OkStatus();
  }

  // All variants of a candidate that compute nothing again, where they are few; those that do
  // follow where one does not fit.
  absl::Status ExpandCandidate(const SearchNode& node) {
    const ParallelConfig even = oracle_.space().ConfigOf(node.group, node.index);
    const std::vector<ParallelConfig> cut =
        CutsOf(even, oracle_.request().dims, oracle_.HasFreeCuts(even));
    if (cut.empty()) return ChooseOpen(node.group, node.index, node.bound);
    for (const ParallelConfig& config : cut) {
      MGC_RETURN_IF_ERROR(ExpandVariant(node.group, node.index, config));
    }
    return absl::OkStatus();
  }
  // Of a candidate with too many variants, of which no more than this is known.
  absl::Status ChooseOpen(size_t group, size_t index, int64_t least_ns) {
    if (!opened_.insert({group, index}).second) return absl::OkStatus();
    MGC_ASSIGN_OR_RETURN(const auto choice, oracle_.ChooseFor(group, index, memory_));
    if (!choice.has_value()) return absl::OkStatus();
    open_ns_ = std::min(open_ns_, least_ns);
    return PushVariant({group, index, choice->config, choice->bound, memory_});
  }
  absl::Status ExpandVariant(size_t group, size_t index, const ParallelConfig& config) {
    MGC_ASSIGN_OR_RETURN(const auto bound, oracle_.BoundOf(group, config));
    if (!bound.has_value()) return absl::OkStatus();
    Variant variant{group, index, config, *bound, memory_};
    if (bound->peak_bytes > memory_) return ExpandRecomputed(variant);
    return PushVariant(std::move(variant));
  }
  // What has one layer more that is computed again, or computes more of one again.
  absl::Status ExpandRecomputed(const Variant& variant) {
    NoteTooLarge(variant.config, variant.bound.peak_bytes);
    if (!oracle_.HasFreeRecomputation()) return absl::OkStatus();
    const ModelDims& dims = oracle_.request().dims;
    if (!HasFewRecomputations(dims))
      return ChooseOpen(variant.group, variant.index, variant.bound.step_ns);
    for (const ParallelConfig& config : MoreRecomputedThan(variant.config, dims)) {
      if (!expanded_variants_.insert(FlagsText(config)).second) continue;
      MGC_RETURN_IF_ERROR(ExpandVariant(variant.group, variant.index, config));
    }
    return absl::OkStatus();
  }

  // The bound of a group by all that has been profiled since.
  int64_t LeastOf(const SearchNode& node) const {
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

  const FoundPlan& Best() const {
    return *std::min_element(fitting_.begin(), fitting_.end(), IsFaster);
  }
  int64_t BestNs() const { return fitting_.empty() ? kNever : Best().step_ns; }

  absl::Status ExpandGroup(size_t g) {
    if (!expanded_.insert(g).second) return absl::OkStatus();
    MGC_ASSIGN_OR_RETURN(const ModelProfile* profile, oracle_.ProfileOf(g));
    const std::vector<size_t>& roots = tree_.roots();
    if (std::find(roots.begin(), roots.end(), g) != roots.end()) PushFiner(g, profile);
    if (profile == nullptr) return absl::OkStatus();
    const std::vector<PlanOracle::Bounds> bounds = oracle_.BoundsOf(g, *profile);
    for (size_t i = 0; i < bounds.size(); ++i) {
      const PlanBound& even = bounds[i].even;
      const ParallelConfig config = oracle_.space().ConfigOf(g, i);
      if (even.held_bytes > memory_) {
        NoteTooLarge(config, even.held_bytes);
      } else {
        frontier_.PushCandidate(g, i, PlanKindOf(config), bounds[i].least_ns, even.step_ns);
      }
    }
    return absl::OkStatus();
  }

  void PushFiner(size_t root, const ModelProfile* profile) {
    for (const size_t g : tree_.FinerThan(root)) {
      if (profile == nullptr) {
        frontier_.PushGroup(g, 0, kNever);
        continue;
      }
      const ModelProfile expected = tree_.Expect(*profile, root, g);
      int64_t seems = kNever;
      for (const PlanOracle::Bounds& bounds : oracle_.BoundsOf(g, expected)) {
        if (bounds.even.peak_bytes <= memory_) seems = std::min(seems, bounds.even.step_ns);
      }
      frontier_.PushGroup(g, tree_.LeastStepNs(*profile, root, g), seems);
    }
  }

  absl::Status Compile(size_t v) {
    const Variant variant = variants_[v];
    MGC_ASSIGN_OR_RETURN(const FoundPlan* plan, oracle_.PlanOf(variant.config));
    if (plan == nullptr) return absl::OkStatus();
    frontier_.Learn(PlanKindOf(plan->config), plan->step_ns, variant.estimate_ns);
    if (plan->peak_bytes > memory_) return DoesNotFit(variant, *plan);
    fitting_.push_back(*plan);
    if (!frontier_.proves()) frontier_.PushPlan(v, plan->step_ns);
    return absl::OkStatus();
  }
  // A bound does not know all that a plan needs: layers are chosen again for so much less.
  absl::Status DoesNotFit(const Variant& variant, const FoundPlan& plan) {
    NoteTooLarge(plan.config, plan.peak_bytes);
    if (frontier_.proves()) return ExpandRecomputed(variant);
    const int64_t within = variant.within - (plan.peak_bytes - memory_);
    if (within < memory_ - memory_ / 4) return absl::OkStatus();
    return ChooseVariant(variant.group, variant.index, within);
  }

  void NoteTooLarge(const ParallelConfig& config, int64_t bytes) {
    ++too_large_;
    if (bytes >= least_peak_) return;
    least_peak_ = bytes;
    least_peak_config_ = config;
  }

  PlanOracle& oracle_;
  const GroupTree& tree_;
  const int64_t memory_;
  const int64_t plans_;
  const int64_t budget_;  // of all that the oracle compiles
  Frontier frontier_;
  std::set<size_t> expanded_;                   // groups
  std::set<std::string> expanded_variants_;     // by flags, of those that compute more again
  std::set<std::pair<size_t, size_t>> opened_;  // candidates with too many variants
  std::vector<Variant> variants_;
  std::set<MeshSizes> meshes_;      // whose fastest plan is known, as far as expected
  std::vector<FoundPlan> fitting_;  // all that were compiled
  int64_t open_ns_ = kNever;        // the least bound of candidates with too many variants
  int64_t too_large_ = 0;
  int64_t least_peak_ = kNever;
  ParallelConfig least_peak_config_;
};

absl::Status NothingFits(const SearchRequest& request, const PlanOracle& oracle,
                         const BestFirst& search) {
  const Machine& machine = request.options.machine;
  const SearchSpace& space = oracle.space();
  if (search.open_ns() < kNever) {
    const std::string refused =
        oracle.refusal().ok() ? "" : absl::StrCat("\n", oracle.refusal().message());
    return absl::InvalidArgumentError(absl::StrCat(
        "no plan that fits was found among ", space.candidates, " before the budget of ",
        request.budget, " plans ended [A3]; nearest legal: a larger --auto-budget, more ranks",
        refused));
  }
  if (search.least_peak() == kNever) {
    const ParallelConfig& parallel = request.options.parallel;
    return absl::InvalidArgumentError(absl::StrCat(
        "no legal plan for ", parallel.world_size, " ranks and global batch ",
        parallel.global_batch_size, " with what is fixed: ", space.refused,
        " combinations are refused [A1]; nearest legal: fix fewer flags\n",
        space.refusals.empty() ? oracle.refusal().message() : space.refusals.ToString()));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("none of ", space.candidates, " plans fits: the least needs ",
                   BytesText(search.least_peak()), ", a device of ", machine.name, " has ",
                   BytesText(machine.memory), " (", FlagsText(search.least_peak_config()),
                   ") [A2]; nearest legal: more ranks, or a smaller model"));
}

// The fastest within ever less memory, from `best` on.
absl::StatusOr<std::vector<FoundPlan>> FindFront(const SearchRequest& request, PlanOracle& oracle,
                                                 const GroupTree& tree, const FoundPlan& best) {
  std::vector<FoundPlan> front = {best};
  while (front.size() < kMostOfFront) {
    const auto memory =
        static_cast<int64_t>(kLessMemory * static_cast<double>(front.back().peak_bytes));
    BestFirst search(oracle, tree, memory, std::max<int64_t>(request.budget / 8, 1));
    MGC_ASSIGN_OR_RETURN(const std::vector<FoundPlan> found, search.Run(1));
    if (found.empty()) break;
    const FoundPlan& less = found.front();
    // A search that ends early may have missed what one for less memory finds.
    while (front.size() > 1 && front.back().step_ns >= less.step_ns) front.pop_back();
    front.push_back(less);
  }
  return front;
}

// What is known of those beside the best.
absl::StatusOr<std::vector<NeighbourPlan>> FindNeighbours(PlanOracle& oracle,
                                                          const BestFirst& search,
                                                          const FoundPlan& best) {
  std::vector<NeighbourPlan> neighbours;
  const int64_t memory = oracle.request().options.machine.memory;
  for (const auto& [group, index] : NeighboursOf(oracle.space(), best.config)) {
    const ParallelConfig candidate = oracle.space().ConfigOf(group, index);
    MGC_ASSIGN_OR_RETURN(const auto choice, oracle.ChooseFor(group, index, memory));
    if (const FoundPlan* plan = search.FastestOf(candidate)) {
      neighbours.push_back({plan->config, true, plan->step_ns, NeighbourPlan::kCompiled});
    } else if (!choice.has_value() || oracle.IsCompiled(choice->config)) {
      neighbours.push_back({candidate});
    } else {
      const int64_t bound = choice->bound.step_ns;
      const bool is_slower = bound >= best.step_ns;
      MGC_ASSIGN_OR_RETURN(const int64_t expected, search.Expect(oracle, group, choice->config));
      neighbours.push_back({choice->config, true, is_slower ? bound : expected,
                            is_slower ? NeighbourPlan::kBound : NeighbourPlan::kExpected});
    }
  }
  return neighbours;
}

// Whether the plan fits with its evaluation, too.
absl::StatusOr<bool> FitsWhole(const SearchRequest& request, const FoundPlan& plan) {
  // Far from the limit evaluation's boundaries make no difference.
  const int64_t memory = request.options.machine.memory;
  if (plan.peak_bytes <= memory - memory / 8) return true;
  SearchRequest own = request;
  if (plan.strategy.has_value()) own.options.strategy = *plan.strategy;
  MGC_ASSIGN_OR_RETURN(const Plan whole, CompileFound(own, plan.config));
  return PeakBytes(whole) <= memory;
}

}  // namespace

absl::StatusOr<FoundPlans> SearchPlans(const SearchRequest& request) {
  const Machine& machine = request.options.machine;
  PlanOracle oracle(request);
  const SearchSpace& space = oracle.space();
  const GroupTree tree(space, request.dims, machine);
  BestFirst search(oracle, tree, machine.memory, request.budget);
  FoundPlans found;
  MGC_ASSIGN_OR_RETURN(found.ranked, search.Run(static_cast<size_t>(request.results)));
  while (!found.ranked.empty()) {
    MGC_ASSIGN_OR_RETURN(const bool fits, FitsWhole(request, found.ranked.front()));
    if (fits) break;
    found.ranked.erase(found.ranked.begin());
  }
  if (found.ranked.empty()) return NothingFits(request, oracle, search);
  found.candidates = space.candidates;
  found.refused = space.refused;
  found.too_large = search.too_large();
  found.least_bound_ns = std::min(found.ranked.front().step_ns, search.open_ns());
  MGC_ASSIGN_OR_RETURN(found.front, FindFront(request, oracle, tree, found.ranked.front()));
  found.profiled = oracle.profiled();
  found.compiled = oracle.compiled();
  found.known = oracle.Compiled();
  MGC_ASSIGN_OR_RETURN(found.neighbours, FindNeighbours(oracle, search, found.ranked.front()));
  return found;
}

}  // namespace mgc
