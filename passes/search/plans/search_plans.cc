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
#include "passes/search/plans/plan_oracle.h"

namespace mgc {
namespace {

// Of the front each point has at most this share of the memory of the one before.
constexpr double kLessMemory = 0.8;
constexpr size_t kMostOfFront = 5;
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
  int64_t open_ns() const { return frontier_.LeastBound(); }
  int64_t too_large() const { return too_large_; }
  int64_t least_peak() const { return least_peak_; }
  const ParallelConfig& least_peak_config() const { return least_peak_config_; }

 private:
  // Sets aside what the budget does not allow to look at; whether something is left.
  bool MayGoOn() {
    while (!frontier_.empty() && !IsAllowed(frontier_.top())) frontier_.SetTopAside();
    return !frontier_.empty();
  }
  bool IsAllowed(const SearchNode& node) const {
    if (node.kind == SearchNode::kPlan) return true;
    if (node.kind == SearchNode::kCandidate) {
      return oracle_.compiled() < budget_ || oracle_.IsCompiled(node.group, node.index);
    }
    return oracle_.profiled() < kProfilesAPlan * budget_ ||
           oracle_.KnownProfile(node.group) != nullptr;
  }
  const ParallelConfig& ConfigOf(const SearchNode& n) const {
    return oracle_.config(n.group, n.index);
  }

  absl::Status Visit() {
    SearchNode node;
    if (!frontier_.Take(ConfigOf(frontier_.top()), &node)) return absl::OkStatus();
    if (node.kind == SearchNode::kGroup) return ExpandGroup(node.group);
    // Of a mesh whose fastest plan is known others are of interest only to prove that.
    const MeshSizes mesh = SizesOf(ConfigOf(node));
    if (node.kind == SearchNode::kCandidate && meshes_.count(mesh) == 0) return Compile(node);
    if (node.kind == SearchNode::kCandidate) frontier_.SetAside(node);
    if (node.kind == SearchNode::kPlan) meshes_.insert(mesh);
    return absl::OkStatus();
  }

  // From the best plan to the first neighbour that is faster, until none is.
  absl::Status Climb() {
    const int64_t most = oracle_.compiled() + 2 * plans_;
    for (bool climbs = !fitting_.empty(); climbs;) {
      climbs = false;
      const FoundPlan best = *std::min_element(fitting_.begin(), fitting_.end(), IsFaster);
      for (const auto& [group, index] : NeighboursOf(oracle_.space(), best.config)) {
        if (climbs || oracle_.compiled() >= most || oracle_.IsCompiled(group, index)) continue;
        MGC_ASSIGN_OR_RETURN(const FoundPlan* plan, oracle_.PlanOf(group, index));
        if (plan == nullptr || plan->peak_bytes > memory_) continue;
        fitting_.push_back(*plan);
        climbs = IsFaster(*plan, best);
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
      frontier_.Take(ConfigOf(frontier_.top()), &node);
      if (node.kind == SearchNode::kCandidate) {
        MGC_RETURN_IF_ERROR(Compile(node));
      } else if (const int64_t bound = LeastOf(node); bound > node.bound) {
        frontier_.PushGroup(node.group, bound, bound);
      } else {
        MGC_RETURN_IF_ERROR(ExpandGroup(node.group));
      }
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

  int64_t BestNs() const {
    const auto best = std::min_element(fitting_.begin(), fitting_.end(), IsFaster);
    return best == fitting_.end() ? kNever : best->step_ns;
  }

  absl::Status ExpandGroup(size_t g) {
    if (!expanded_.insert(g).second) return absl::OkStatus();
    MGC_ASSIGN_OR_RETURN(const ModelProfile* profile, oracle_.ProfileOf(g));
    const std::vector<size_t>& roots = tree_.roots();
    if (std::find(roots.begin(), roots.end(), g) != roots.end()) PushFiner(g, profile);
    if (profile == nullptr) {
      PushRecomputed(g, 0);
      return absl::OkStatus();
    }
    const std::vector<ParallelConfig>& candidates = oracle_.space().groups[g].candidates;
    for (size_t i = 0; i < candidates.size(); ++i) {
      const PlanBound bound = oracle_.BoundOf(candidates[i], *profile);
      if (bound.peak_bytes <= memory_) {
        frontier_.PushCandidate(g, i, candidates[i], bound.step_ns);
      } else {
        NoteTooLarge(candidates[i], bound.peak_bytes);
        PushRecomputed(g, bound.step_ns);
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
      for (const ParallelConfig& config : oracle_.space().groups[g].candidates) {
        const PlanBound bound = oracle_.BoundOf(config, expected);
        if (bound.peak_bytes <= memory_) seems = std::min(seems, bound.step_ns);
      }
      frontier_.PushGroup(g, tree_.LeastStepNs(*profile, root, g), seems);
    }
  }

  // Recomputation serves those alone that do not fit without, of which one takes `bound`: a group
  // may be in the queue more than once.
  void PushRecomputed(size_t g, int64_t bound) {
    int64_t& least = recomputed_from_.try_emplace(g, kNever).first->second;
    if (bound >= least) return;
    least = bound;
    for (const size_t child : tree_.RecomputedOf(g)) frontier_.PushGroup(child, bound, bound);
  }

  absl::Status Compile(const SearchNode& node) {
    MGC_ASSIGN_OR_RETURN(const FoundPlan* plan, oracle_.PlanOf(node.group, node.index));
    if (plan == nullptr) return absl::OkStatus();
    frontier_.Learn(plan->config, plan->step_ns, node.bound);
    if (plan->peak_bytes > memory_) {
      NoteTooLarge(plan->config, plan->peak_bytes);
      PushRecomputed(node.group, plan->step_ns);
      return absl::OkStatus();
    }
    fitting_.push_back(*plan);
    if (!frontier_.proves()) frontier_.PushPlan(node.group, node.index, plan->step_ns);
    return absl::OkStatus();
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
  std::set<size_t> expanded_;                  // groups
  std::map<size_t, int64_t> recomputed_from_;  // by group without: PushRecomputed
  std::set<MeshSizes> meshes_;                 // whose fastest plan is known, as far as expected
  std::vector<FoundPlan> fitting_;             // all that were compiled
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
    front.push_back(found.front());
  }
  return front;
}

}  // namespace

absl::StatusOr<FoundPlans> SearchPlans(const SearchRequest& request) {
  const Machine& machine = request.options.machine;
  PlanOracle oracle(request);
  const SearchSpace& space = oracle.space();
  const GroupTree tree(space.groups, request.dims, machine);
  BestFirst search(oracle, tree, machine.memory, request.budget);
  FoundPlans found;
  MGC_ASSIGN_OR_RETURN(found.ranked, search.Run(static_cast<size_t>(request.results)));
  if (found.ranked.empty()) return NothingFits(request, oracle, search);
  found.candidates = space.candidates;
  found.refused = space.refused;
  found.too_large = search.too_large();
  found.least_bound_ns = std::min(found.ranked.front().step_ns, search.open_ns());
  MGC_ASSIGN_OR_RETURN(found.front, FindFront(request, oracle, tree, found.ranked.front()));
  found.profiled = oracle.profiled();
  found.compiled = oracle.compiled();
  found.known = oracle.Compiled();
  return found;
}

}  // namespace mgc
