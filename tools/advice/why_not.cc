#include "tools/advice/why_not.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "graph/base/units.h"
#include "passes/config/check_config.h"
#include "passes/config/config_flags.h"
#include "tools/advice/neighbours.h"
#include "tools/views/peak.h"

namespace mgc {
namespace {

// It takes a while to list the actions of a longer schedule only to say where it needs most.
constexpr int64_t kManyActions = 100'000;

int64_t NumActions(const ParallelConfig& config, const CheckedConfig& checked) {
  return 2 * config.pp * std::max<int64_t>(checked.vp, 1) * checked.micro_batches;
}

std::string FirstLine(absl::string_view text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  return lines.front();
}

}  // namespace

std::string WhereFullest(const Plan& plan, int64_t memory) {
  const PlanClass& fullest = FullestClass(plan);
  const PeakMoment moment = FindPeak(plan, fullest);
  return absl::StrCat(BytesText(PeakBytes(plan)), " of ", BytesText(memory), ", pipeline rank ",
                      fullest.coordinate, " at ", moment.segment, " ", moment.op, ", ",
                      moment.action);
}

namespace {

// Of a plan that fits: by how much its step differs.
std::string Slower(int64_t step_ns, int64_t best_ns) {
  const double ratio = static_cast<double>(step_ns) / static_cast<double>(best_ns);
  return absl::StrFormat("%.1f %% %s", 100.0 * std::abs(ratio - 1),
                         ratio > 1 ? "slower" : "faster");
}

std::string SlowerText(const NeighbourPlan& plan, int64_t best_ns) {
  std::string slower = Slower(plan.step_ns, best_ns);
  switch (plan.source) {
    case NeighbourPlan::kCompiled:
      return slower;
    case NeighbourPlan::kBound:
      return absl::StrCat("at least ", slower);
    case NeighbourPlan::kExpected:
      return absl::StrCat("about ", slower);
  }
  return slower;
}

// Whether they differ in the layers of their stages alone, and what is computed again there.
bool IsOfOneMesh(ParallelConfig a, const ParallelConfig& b) {
  a.layout = b.layout;
  a.recompute = b.recompute;
  return FlagsText(a) == FlagsText(b);
}

// A neighbour that is no other recomputation, without what was chosen for `best` behind all else:
// its layers, and how many micro-batches pass a chunk in a row.
ParallelConfig WithoutLastChoices(const FixedChoices& fixed, const ParallelConfig& best,
                                  ParallelConfig neighbour) {
  if (neighbour.recompute != best.recompute) return neighbour;
  if (!fixed.cuts) neighbour.layout = LayoutFlags();
  if (!fixed.recompute) neighbour.recompute = RecomputeKind::kNone;
  if (!fixed.chunks) neighbour.group_size = 0;
  return neighbour;
}

// Empty where a neighbour comes to the same.
std::string WhyNot(const SearchRequest& request, const FoundPlans& found,
                   const ParallelConfig& config) {
  const int64_t memory = request.options.machine.memory;
  const int64_t best_ns = found.ranked.front().step_ns;
  const CheckedConfig checked = CheckConfig(config, request.dims);
  if (!checked.violations.empty()) {
    return absl::StrCat(checked.violations[0].text, " [", checked.violations[0].label, "]");
  }
  const bool other_layers = IsOfOneMesh(config, found.ranked.front().config);
  OrderScope scope = kSearchScope;
  for (const NeighbourPlan& known : found.neighbours) {
    if (other_layers || !IsOfOneMesh(known.config, config)) continue;
    if (known.fits) return known.step_ns == best_ns ? "" : SlowerText(known, best_ns);
    if (known.least_bytes > memory && NumActions(config, checked) > kManyActions) {
      return absl::StrCat("at least ", BytesText(known.least_bytes), " of ", BytesText(memory),
                          ", nothing computed again");
    }
    scope.delay_reductions = false;  // its time is not asked for
  }
  Plan plan;
  const absl::StatusOr<FoundPlan> made = MeasureFound(*found.models, request, config, &plan, scope);
  if (!made.ok()) return FirstLine(made.status().message());
  if (made->peak_bytes > memory) return WhereFullest(plan, memory);
  return made->step_ns == best_ns ? "" : Slower(made->step_ns, best_ns);
}

}  // namespace

std::vector<RejectedPlan> ExplainNeighbours(const SearchRequest& request, const FoundPlans& found) {
  std::vector<RejectedPlan> rejected;
  SearchRequest own = request;
  if (found.ranked.front().strategy) own.options.strategy = *found.ranked.front().strategy;
  const ParallelConfig& best = found.ranked.front().config;
  for (const Neighbour& neighbour : NeighboursOf(NeighbourLimits{request.fixed}, best)) {
    std::string why = WhyNot(own, found, WithoutLastChoices(request.fixed, best, neighbour.config));
    if (!why.empty()) rejected.push_back({neighbour.change, std::move(why)});
  }
  return rejected;
}

}  // namespace mgc
