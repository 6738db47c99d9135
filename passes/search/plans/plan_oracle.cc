#include "passes/search/plans/plan_oracle.h"

#include <algorithm>

#include "graph/base/status.h"
#include "passes/plan/time/predict_step.h"

namespace mgc {
namespace {

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

// A refusal is no error here.
template <typename T>
absl::StatusOr<std::unique_ptr<T>> OrNull(absl::StatusOr<T> made) {
  if (made.ok()) return std::make_unique<T>(*std::move(made));
  if (IsRefusal(made.status())) return nullptr;
  return made.status();
}

}  // namespace

PlanOracle::PlanOracle(const SearchRequest& request)
    : request_(request),
      space_(ListCandidates(request.options.parallel, request.fixed, request.dims,
                            request.options.machine)) {}

absl::StatusOr<const ModelProfile*> PlanOracle::ProfileOf(size_t group) {
  const auto known = profiles_.find(group);
  if (known != profiles_.end()) return known->second.get();
  CompileOptions options = request_.options;
  options.parallel = ProfiledConfig(config(group, 0));
  MGC_ASSIGN_OR_RETURN(const Graph graph, request_.build(options.parallel));
  absl::StatusOr<ModelProfile> made = ProfileModel(graph, request_.dims, options);
  NoteRefusal(made.status());
  MGC_ASSIGN_OR_RETURN(auto profile, OrNull(std::move(made)));
  return profiles_.emplace(group, std::move(profile)).first->second.get();
}

PlanBound PlanOracle::BoundOf(const ParallelConfig& config, const ModelProfile& profile) const {
  return BoundPlan(config, CheckConfig(config, request_.dims), profile, request_.options.machine);
}

absl::StatusOr<const FoundPlan*> PlanOracle::PlanOf(size_t group, size_t index) {
  const auto known = plans_.find({group, index});
  if (known != plans_.end()) return known->second.get();
  absl::StatusOr<Plan> made = CompileFound(request_, config(group, index));
  NoteRefusal(made.status());
  MGC_ASSIGN_OR_RETURN(auto plan, OrNull(std::move(made)));
  std::unique_ptr<FoundPlan> found;
  if (plan != nullptr) {
    MGC_ASSIGN_OR_RETURN(FoundPlan measured, Measure(*plan, config(group, index)));
    found = std::make_unique<FoundPlan>(std::move(measured));
  }
  return plans_.emplace(std::make_pair(group, index), std::move(found)).first->second.get();
}

std::vector<FoundPlan> PlanOracle::Compiled() const {
  std::vector<FoundPlan> compiled;
  for (const auto& [candidate, plan] : plans_) {
    if (plan != nullptr) compiled.push_back(*plan);
  }
  return compiled;
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

const PlanClass& FullestClass(const Plan& plan) {
  return *std::max_element(
      plan.classes.begin(), plan.classes.end(), [](const PlanClass& a, const PlanClass& b) {
        return a.memory.peak + a.memory.workspace < b.memory.peak + b.memory.workspace;
      });
}

int64_t PeakBytes(const Plan& plan) {
  const MemoryUse& memory = FullestClass(plan).memory;
  return memory.peak + memory.workspace;
}

absl::StatusOr<FoundPlan> Measure(const Plan& plan, const ParallelConfig& config) {
  FoundPlan found;
  found.config = config;
  found.step_ns = plan.predicted_step_ns;
  found.peak_bytes = PeakBytes(plan);
  found.memory = FullestClass(plan).memory;
  MGC_ASSIGN_OR_RETURN(found.parts, PartsOf(plan));
  return found;
}

}  // namespace mgc
