#include "passes/search/plans/search_plans.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/base/units.h"
#include "passes/config/config_flags.h"
#include "passes/search/plans/best_first.h"
#include "passes/search/plans/group_bounds.h"
#include "passes/search/plans/group_tree.h"
#include "passes/search/plans/plan_oracle.h"

namespace mgc {
namespace {

// Of the front each point has at most this share of the memory of the one before.
constexpr double kLessMemory = 0.8;
constexpr size_t kMostOfFront = 5;

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
  if (search.variants().least_peak() == kNever) {
    const ParallelConfig& parallel = request.options.parallel;
    return absl::InvalidArgumentError(absl::StrCat(
        "no legal plan for ", parallel.world_size, " ranks and global batch ",
        parallel.global_batch_size, " with what is fixed: ", space.refused,
        " combinations are refused [A1]; nearest legal: fix fewer flags\n",
        space.refusals.empty() ? oracle.refusal().message() : space.refusals.ToString()));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "none of ", space.candidates, " plans fits: the least needs ",
      BytesText(search.variants().least_peak()), ", a device of ", machine.name, " has ",
      BytesText(machine.memory), " (", FlagsText(search.variants().least_peak_config()),
      ") [A2]; nearest legal: more ranks, or a smaller model"));
}

// The fastest within ever less memory, from `best` on, or from a faster one that this comes across.
// Each may compile `plans`.
absl::StatusOr<std::vector<FoundPlan>> FindFront(PlanOracle& oracle, GroupBounds& bounds,
                                                 const FoundPlan& best, int64_t plans) {
  std::vector<FoundPlan> front = {best};
  while (front.size() < kMostOfFront) {
    const auto memory =
        static_cast<int64_t>(kLessMemory * static_cast<double>(front.back().peak_bytes));
    BestFirst search(oracle, bounds, memory, plans, false);
    MGC_ASSIGN_OR_RETURN(const std::vector<FoundPlan> found, search.Run(1));
    if (found.empty()) break;
    const FoundPlan& less = found.front();
    // A search that ends early may have missed what one for less memory finds.
    while (!front.empty() && front.back().step_ns >= less.step_ns) front.pop_back();
    front.push_back(less);
  }
  return front;
}

// Puts a plan first; of its mesh there is no other, then.
void PutFirst(const FoundPlan& first, size_t most, std::vector<FoundPlan>* ranked) {
  const auto mesh = [](const FoundPlan& plan) {
    return std::tie(plan.config.tp, plan.config.cp, plan.config.pp);
  };
  ranked->erase(std::remove_if(ranked->begin(), ranked->end(),
                               [&](const FoundPlan& plan) { return mesh(plan) == mesh(first); }),
                ranked->end());
  ranked->insert(ranked->begin(), first);
  if (ranked->size() > most) ranked->resize(most);
}

// What is known of those beside the best.
absl::StatusOr<std::vector<NeighbourPlan>> FindNeighbours(PlanOracle& oracle,
                                                          const BestFirst& search,
                                                          const FoundPlan& best) {
  std::vector<NeighbourPlan> neighbours;
  for (const auto& [group, index] : NeighboursOf(oracle.space(), best.config)) {
    const ParallelConfig candidate = oracle.space().ConfigOf(group, index);
    if (const FoundPlan* plan = search.FastestOf(candidate)) {
      neighbours.push_back({plan->config, true, plan->step_ns, NeighbourPlan::kCompiled});
      continue;
    }
    MGC_ASSIGN_OR_RETURN(const auto choice, search.variants().ChoiceFor(group, index));
    if (!choice.has_value() || oracle.IsCompiled(choice->config)) {
      ParallelConfig even = candidate;
      if (oracle.HasFreeRecomputation()) even.recompute = RecomputeKind::kNone;
      MGC_ASSIGN_OR_RETURN(const auto bound, oracle.BoundOf(group, even));
      const int64_t least = bound.has_value() ? bound->peak_bytes : 0;
      neighbours.push_back({candidate, false, 0, NeighbourPlan::kBound, least});
    } else {
      const int64_t bound = choice->bound.step_ns;
      const bool is_slower = bound >= best.step_ns;
      const int64_t expected = search.Expect(choice->config, choice->estimate_ns);
      neighbours.push_back({choice->config, true, is_slower ? bound : expected,
                            is_slower ? NeighbourPlan::kBound : NeighbourPlan::kExpected});
    }
  }
  return neighbours;
}

}  // namespace

int64_t StepParts::ExposedNs() const {
  int64_t all = 0;
  for (const auto& [axes, ns] : exposed_ns) all += ns;
  return all;
}

absl::StatusOr<FoundPlans> SearchPlans(const SearchRequest& request) {
  const Machine& machine = request.options.machine;
  PlanOracle oracle(request);
  const SearchSpace& space = oracle.space();
  const GroupTree tree(space, request.dims, machine);
  GroupBounds bounds(oracle, tree);
  BestFirst search(oracle, bounds, machine.memory, request.budget, true);
  FoundPlans found;
  MGC_ASSIGN_OR_RETURN(found.ranked, search.Run(static_cast<size_t>(request.results)));
  if (found.ranked.empty()) return NothingFits(request, oracle, search);
  found.candidates = space.candidates;
  found.refused = space.refused;
  found.too_large = search.variants().too_large();
  // Where all could be looked at for the answer, all can for the front.
  const bool is_proved = search.open_ns() >= found.ranked.front().step_ns;
  const int64_t plans = is_proved ? request.budget : std::max<int64_t>(request.budget / 8, 1);
  MGC_ASSIGN_OR_RETURN(found.front, FindFront(oracle, bounds, found.ranked.front(), plans));
  // It needs less memory than the first, so that it fits with its evaluation.
  if (found.front.front().step_ns < found.ranked.front().step_ns) {
    PutFirst(found.front.front(), static_cast<size_t>(request.results), &found.ranked);
  }
  found.least_bound_ns = std::min(found.ranked.front().step_ns, search.open_ns());
  found.profiled = oracle.profiled();
  found.compiled = oracle.compiled();
  found.known = oracle.Compiled();
  found.models = oracle.models();
  MGC_ASSIGN_OR_RETURN(found.neighbours, FindNeighbours(oracle, search, found.ranked.front()));
  return found;
}

}  // namespace mgc
