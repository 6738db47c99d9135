#include "passes/search/plans/search_plans.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/base/units.h"
#include "passes/config/config_flags.h"
#include "passes/plan/time/predict_step.h"
#include "passes/search/plans/bound_plan.h"
#include "passes/search/plans/group_tree.h"

namespace mgc {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// What is looked at next: the least bound, and of one bound the most exact, in a fixed order.
struct Node {
  enum Kind : uint8_t { kPlan, kCandidate, kGroup } kind = kGroup;
  int64_t bound = 0;
  size_t group = 0;
  size_t index = 0;  // of a candidate in its group, of a plan among those compiled

  bool operator>(const Node& other) const {
    return std::tie(bound, kind, group, index) >
           std::tie(other.bound, other.kind, other.group, other.index);
  }
};

class Search {
 public:
  explicit Search(const SearchRequest& request)
      : request_(request),
        machine_(request.options.machine),
        space_(ListCandidates(request.options.parallel, request.fixed, request.dims, machine_)),
        tree_(space_.groups) {}

  absl::StatusOr<FoundPlans> Run() {
    found_.candidates = space_.candidates;
    found_.refused = space_.refused;
    found_.least_peak_bytes = kNever;
    for (const size_t g : tree_.roots()) Push({Node::kGroup, 0, g, 0});
    while (!queue_.empty() && found_.ranked.size() < static_cast<size_t>(request_.results)) {
      const Node node = queue_.top();
      if (node.kind == Node::kCandidate && found_.compiled >= request_.budget) break;
      queue_.pop();
      MGC_RETURN_IF_ERROR(Expand(node));
    }
    if (plans_.empty()) return NothingFits();
    Rank();
    return std::move(found_);
  }

 private:
  absl::Status Expand(const Node& node) {
    switch (node.kind) {
      case Node::kGroup:
        return expanded_.insert(node.group).second ? ExpandGroup(node.group) : absl::OkStatus();
      case Node::kCandidate:
        return CompileCandidate(node.group, node.index);
      case Node::kPlan:
        found_.ranked.push_back(plans_[node.index]);
        return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  absl::Status ExpandGroup(size_t g) {
    MGC_ASSIGN_OR_RETURN(const std::unique_ptr<ModelProfile> profile, ProfileOf(g));
    if (profile == nullptr) {
      for (const size_t finer : tree_.FinerThan(g)) Push({Node::kGroup, 0, finer, 0});
      PushRecomputed(g, 0);
      return absl::OkStatus();
    }
    const std::vector<ParallelConfig>& candidates = space_.groups[g].candidates;
    for (size_t i = 0; i < candidates.size(); ++i) {
      const PlanBound bound = BoundOf(candidates[i], *profile);
      if (bound.peak_bytes <= machine_.memory) {
        Push({Node::kCandidate, bound.step_ns, g, i});
      } else {
        NoteTooLarge(candidates[i], bound.peak_bytes);
        PushRecomputed(g, bound.step_ns);
      }
    }
    for (const size_t finer : tree_.FinerThan(g)) {
      Push({Node::kGroup, tree_.LeastStepNs(*profile, g, finer, machine_), finer, 0});
    }
    return absl::OkStatus();
  }

  void Push(const Node& node) { queue_.push(node); }

  // Recomputation serves those alone that do not fit without, of which one takes `bound`: a group
  // may be in the queue more than once.
  void PushRecomputed(size_t g, int64_t bound) {
    int64_t& least = recomputed_from_.try_emplace(g, kNever).first->second;
    if (bound >= least) return;
    least = bound;
    for (const size_t child : tree_.RecomputedOf(g)) Push({Node::kGroup, bound, child, 0});
  }

  PlanBound BoundOf(const ParallelConfig& config, const ModelProfile& profile) const {
    return BoundPlan(config, CheckConfig(config, request_.dims), profile, machine_);
  }

  // Null where the compiler refuses the group.
  absl::StatusOr<std::unique_ptr<ModelProfile>> ProfileOf(size_t g) {
    CompileOptions options = request_.options;
    options.parallel = ProfiledConfig(space_.groups[g].candidates.front());
    MGC_ASSIGN_OR_RETURN(const Graph graph, request_.build(options.parallel));
    absl::StatusOr<ModelProfile> profile = ProfileModel(graph, request_.dims, options);
    ++found_.profiled;
    if (profile.ok()) return std::make_unique<ModelProfile>(*std::move(profile));
    if (IsRefusal(profile.status())) return nullptr;
    return profile.status();
  }

  absl::Status CompileCandidate(size_t g, size_t index) {
    const ParallelConfig& config = space_.groups[g].candidates[index];
    const absl::StatusOr<Plan> plan = CompileFound(request_, config);
    ++found_.compiled;
    if (!plan.ok()) {
      if (!IsRefusal(plan.status())) return plan.status();
      ++found_.refused;
      return absl::OkStatus();
    }
    if (const int64_t bytes = PeakBytes(*plan); bytes > machine_.memory) {
      NoteTooLarge(config, bytes);
      PushRecomputed(g, plan->predicted_step_ns);
      return absl::OkStatus();
    }
    MGC_ASSIGN_OR_RETURN(FoundPlan found, Measure(*plan, config));
    plans_.push_back(std::move(found));
    Push({Node::kPlan, plans_.back().step_ns, 0, plans_.size() - 1});
    return absl::OkStatus();
  }

  void NoteTooLarge(const ParallelConfig& config, int64_t bytes) {
    ++found_.too_large;
    if (bytes >= found_.least_peak_bytes) return;
    found_.least_peak_bytes = bytes;
    found_.least_peak_config = config;
  }

  // Where the budget has ended the search, the rest of what has been compiled follows by its time.
  void Rank() {
    const int64_t open = queue_.empty() ? kNever : queue_.top().bound;
    std::vector<FoundPlan> all = plans_;
    std::stable_sort(all.begin(), all.end(),
                     [](const FoundPlan& a, const FoundPlan& b) { return a.step_ns < b.step_ns; });
    found_.least_bound_ns = std::min(all.front().step_ns, open);
    int64_t least_peak = kNever;
    for (const FoundPlan& plan : all) {
      if (plan.peak_bytes >= least_peak) continue;
      least_peak = plan.peak_bytes;
      found_.front.push_back(plan);
    }
    all.resize(std::min(all.size(), static_cast<size_t>(request_.results)));
    found_.ranked = std::move(all);
  }

  absl::Status NothingFits() const {
    if (space_.candidates == 0 || found_.least_peak_bytes == kNever) {
      return absl::InvalidArgumentError(absl::StrCat(
          "no legal plan for ", request_.options.parallel.world_size, " ranks and global batch ",
          request_.options.parallel.global_batch_size, " with what is fixed: ", found_.refused,
          " combinations are refused [A1]; nearest legal: fix fewer flags\n",
          space_.refusals.ToString()));
    }
    return absl::InvalidArgumentError(
        absl::StrCat("none of ", space_.candidates, " plans fits: the least needs ",
                     BytesText(found_.least_peak_bytes), ", a device of ", machine_.name, " has ",
                     BytesText(machine_.memory), " (", FlagsText(found_.least_peak_config),
                     ") [A2]; nearest legal: more ranks, or a smaller model"));
  }

  const SearchRequest& request_;
  const Machine& machine_;
  const SearchSpace space_;
  const GroupTree tree_;
  std::priority_queue<Node, std::vector<Node>, std::greater<Node>> queue_;
  std::set<size_t> expanded_;                  // groups
  std::map<size_t, int64_t> recomputed_from_;  // by group without: PushRecomputed
  std::vector<FoundPlan> plans_;
  FoundPlans found_;
};

// Where ranks share cores the step is the work of all, and nobody waits.
absl::StatusOr<StepParts> PartsOf(const Plan& plan) {
  MGC_ASSIGN_OR_RETURN(const SimulatedStep step, PredictStep(plan));
  const auto busiest = std::max_element(step.busy_ns.begin(), step.busy_ns.end());
  const auto c = static_cast<size_t>(busiest - step.busy_ns.begin());
  StepParts parts;
  parts.update_ns = step.update_ns[c];
  parts.compute_ns = *busiest - parts.update_ns;
  parts.exposed_ns = step.collectives[c].exposed_ns;
  parts.bubble_ns = std::max<int64_t>(0, step.makespan_ns - *busiest - parts.exposed_ns);
  return parts;
}

}  // namespace

int64_t PeakBytes(const Plan& plan) {
  int64_t peak = 0;
  for (const PlanClass& c : plan.classes) peak = std::max(peak, c.memory.peak + c.memory.workspace);
  return peak;
}

absl::StatusOr<Plan> CompileFound(const SearchRequest& request, const ParallelConfig& config) {
  MGC_ASSIGN_OR_RETURN(const Graph graph, request.build(config));
  CompileOptions options = request.options;
  options.parallel = config;
  options.limit_memory = false;
  options.run = RunOptions();
  options.run.check = false;
  return Compile(graph, request.dims, options);
}

absl::StatusOr<FoundPlan> Measure(const Plan& plan, const ParallelConfig& config) {
  FoundPlan found;
  found.config = config;
  found.step_ns = plan.predicted_step_ns;
  found.peak_bytes = PeakBytes(plan);
  const auto fullest = std::max_element(
      plan.classes.begin(), plan.classes.end(), [](const PlanClass& a, const PlanClass& b) {
        return a.memory.peak + a.memory.workspace < b.memory.peak + b.memory.workspace;
      });
  found.memory = fullest->memory;
  MGC_ASSIGN_OR_RETURN(found.parts, PartsOf(plan));
  return found;
}

absl::StatusOr<FoundPlans> SearchPlans(const SearchRequest& request) {
  return Search(request).Run();
}

}  // namespace mgc
