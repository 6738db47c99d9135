#include "tools/advice/estimate_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/json_writer.h"
#include "graph/base/status.h"
#include "graph/base/units.h"
#include "passes/config/check_config.h"
#include "tools/advice/neighbours.h"
#include "tools/advice/why_not.h"
#include "tools/views/format.h"

namespace mgc {
namespace {

constexpr size_t kMostFixes = 3;

bool Fits(const PlanEstimate& estimate, const Machine& machine) {
  return estimate.plan.peak_bytes <= machine.memory;
}

// Neighbours that fit, the fastest first. What is refused helps nobody.
std::vector<PlanFix> FindFixes(ModelCompilers& models, const SearchRequest& request) {
  std::vector<PlanFix> fixes;
  for (const Neighbour& neighbour : NeighboursOf(NeighbourLimits(), request.options.parallel)) {
    if (!CheckConfig(neighbour.config, request.dims).violations.empty()) continue;
    Plan plan;
    absl::StatusOr<FoundPlan> found = MeasureFound(models, request, neighbour.config, &plan);
    if (!found.ok() || found->peak_bytes > request.options.machine.memory) continue;
    fixes.push_back({neighbour.change, *std::move(found)});
  }
  std::stable_sort(fixes.begin(), fixes.end(), [](const PlanFix& a, const PlanFix& b) {
    return a.plan.step_ns < b.plan.step_ns;
  });
  fixes.resize(std::min(fixes.size(), kMostFixes));
  return fixes;
}

}  // namespace

absl::StatusOr<PlanEstimate> EstimatePlan(const SearchRequest& request) {
  const ParallelConfig& config = request.options.parallel;
  const int64_t memory = request.options.machine.memory;
  Plan plan;
  PlanEstimate estimate;
  ModelCompilers models(request.build, request.dims);
  MGC_ASSIGN_OR_RETURN(estimate.plan, MeasureFound(models, request, config, &plan));
  estimate.fullest = WhereFullest(plan, memory);
  if (estimate.plan.peak_bytes > memory) estimate.fixes = FindFixes(models, request);
  return estimate;
}

std::string EstimateText(const PlanEstimate& estimate, const Machine& machine) {
  const int64_t peak = estimate.plan.peak_bytes;
  std::string text =
      absl::StrCat("a step of ", DurationText(estimate.plan.step_ns), " on ", machine.name, "\n");
  if (Fits(estimate, machine)) return absl::StrCat(text, "fits: ", estimate.fullest, "\n");
  absl::StrAppend(&text, "does not fit, ", BytesText(peak - machine.memory),
                  " short: ", estimate.fullest, "\n");
  if (estimate.fixes.empty()) return absl::StrCat(text, "no single change makes it fit\n");
  std::vector<std::vector<std::string>> rows = {{"it fits with", "step", "", "peak"}};
  for (const PlanFix& fix : estimate.fixes) {
    const double ratio =
        static_cast<double>(fix.plan.step_ns) / static_cast<double>(estimate.plan.step_ns);
    rows.push_back({fix.change, DurationText(fix.plan.step_ns),
                    absl::StrFormat("%+.1f %%", 100 * (ratio - 1)),
                    BytesText(fix.plan.peak_bytes)});
  }
  return absl::StrCat(text, TableText(rows, {false, true, true, true}));
}

std::string EstimateJson(const PlanEstimate& estimate, const Machine& machine) {
  JsonWriter json;
  json.BeginObject().Bool("fits", Fits(estimate, machine));
  json.Integer("step_ns", estimate.plan.step_ns).Integer("peak", estimate.plan.peak_bytes);
  json.Integer("device_bytes", machine.memory).String("fullest", estimate.fullest);
  json.Key("fixes").BeginArray();
  for (const PlanFix& fix : estimate.fixes) {
    json.NewLine().BeginObject().String("change", fix.change);
    json.Integer("step_ns", fix.plan.step_ns).Integer("peak", fix.plan.peak_bytes).EndObject();
  }
  json.NewLine().EndArray().EndObject();
  return std::move(json).Finish();
}

}  // namespace mgc
