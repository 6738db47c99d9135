#include "passes/search/plans/plan_oracle.h"

#include <algorithm>

#include "graph/base/status.h"
#include "passes/config/config_flags.h"
#include "passes/plan/forms/plan_forms.h"
#include "passes/search/class_layout.h"

namespace mgc {
namespace {

// Tables of rows that are compiled for a profile key, at most.
constexpr size_t kTablesAKey = 100;

// Uneven chunks are chosen where they are expected to take less by one part in so many.
constexpr int64_t kLeastGain = 64;

// Where ranks share cores the step is the work of all, and nobody waits.
StepParts PartsOf(const OrderedPlan& ordered) {
  const auto busiest = std::max_element(
      ordered.classes.begin(), ordered.classes.end(),
      [](const OrderedClass& a, const OrderedClass& b) { return a.time.busy_ns < b.time.busy_ns; });
  const ClassTime& time = busiest->time;
  StepParts parts;
  parts.update_ns = time.update_ns;
  parts.compute_ns = time.busy_ns - time.update_ns;
  // Some collectives go over pp as well.
  std::map<std::string, int64_t> exposed;
  for (const auto& [axes, ns] : time.exposed) exposed[ordered.staged.mesh.GroupName(axes)] = ns;
  if (time.transfers_ns > 0) exposed["pp"] += time.transfers_ns;
  parts.exposed_ns.assign(exposed.begin(), exposed.end());
  std::stable_sort(parts.exposed_ns.begin(), parts.exposed_ns.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  const int64_t waited = parts.ExposedNs();
  parts.bubble_ns = std::max<int64_t>(0, ordered.makespan_ns - time.busy_ns - waited);
  return parts;
}

// A refusal is no error here.
template <typename T>
absl::StatusOr<std::unique_ptr<T>> OrNull(absl::StatusOr<T> made) {
  if (made.ok()) return std::make_unique<T>(*std::move(made));
  if (IsRefusal(made.status())) return nullptr;
  return made.status();
}

// Compiles, and keeps what the simulation says of the step. `made`: gets the plan.
absl::StatusOr<FoundPlan> CompileTo(ModelCompiler& model, CompileOptions options,
                                    const ParallelConfig& config, OrderScope scope,
                                    bool brings_model, Plan* made) {
  options.parallel = config;
  options.limit_memory = false;
  options.order = scope;
  options.evaluation = scope.evaluation;
  options.brings_model = brings_model;
  options.run = RunOptions();
  options.run.check = false;
  FoundPlan found;
  options.run.after_pass = [&found](const FinishedPass& pass) {
    const auto* ordered = std::get_if<OrderedPlan>(&pass.form);
    if (ordered != nullptr) {
      found.parts = PartsOf(*ordered);
      found.counted_rounds = ordered->counted_rounds;
    }
    return true;
  };
  MGC_ASSIGN_OR_RETURN(Plan plan, model.Compile(options));
  found.config = config;
  found.step_ns = plan.predicted_step_ns;
  found.peak_bytes = PeakBytes(plan);
  found.memory = FullestClass(plan).memory;
  if (made != nullptr) *made = std::move(plan);
  return found;
}

}  // namespace

PlanOracle::PlanOracle(const SearchRequest& request)
    : request_(request),
      space_(ListCandidates(request.options.parallel, request.fixed, request.dims,
                            request.options.machine)),
      models_(std::make_shared<ModelCompilers>(request.build, request.dims)) {}

size_t PlanOracle::FirstKind() const {
  if (HasFreeRecomputation()) return 0;
  const Recomputation& fixed = request_.options.parallel.recompute;
  return static_cast<size_t>(fixed.Of(0));
}

const ModelProfile* PlanOracle::KnownProfile(size_t group) const {
  const auto known = profiles_.find({group, FirstKind()});
  return known == profiles_.end() ? nullptr : known->second.get();
}

absl::StatusOr<const ModelProfile*> PlanOracle::ProfileOf(size_t group) {
  return ProfileOf(group, FirstKind());
}

absl::StatusOr<const ModelProfile*> PlanOracle::ProfileOf(size_t group, size_t kind) {
  const auto known = profiles_.find({group, kind});
  if (known != profiles_.end()) return known->second.get();
  CompileOptions options = request_.options;
  options.parallel = ProfiledConfig(space_.ConfigOf(group, 0));
  if (HasFreeRecomputation()) options.parallel.recompute = kRecomputeKinds[kind];
  MGC_ASSIGN_OR_RETURN(const std::shared_ptr<ModelCompiler> model, models_->For(options.parallel));
  absl::StatusOr<ModelProfile> made = ProfileWith(*model, std::move(options));
  NoteRefusal(made.status());
  MGC_ASSIGN_OR_RETURN(auto profile, OrNull(std::move(made)));
  return profiles_.emplace(std::make_pair(group, kind), std::move(profile)).first->second.get();
}

absl::StatusOr<ModelProfile> PlanOracle::ProfileWith(ModelCompiler& model, CompileOptions options) {
  MGC_ASSIGN_OR_RETURN(const StrategySpec* strategy, StrategyOf(options.parallel));
  if (strategy != nullptr) options.strategy = *strategy;
  return ProfileModel(model, options);
}

absl::StatusOr<bool> PlanOracle::CutsParametersOver(int64_t tp) {
  const auto known = named_.find(tp);
  if (known != named_.end()) return known->second;
  ParallelConfig config = request_.options.parallel;
  config.tp = config.world_size = tp;
  config.pp = config.cp = 1;
  config.global_batch_size = config.micro_batch_size;
  MGC_ASSIGN_OR_RETURN(const std::shared_ptr<ModelCompiler> model, models_->For(config));
  MGC_ASSIGN_OR_RETURN(const Graph* graph, model->ModelOrFew(config.optimizer));
  MGC_ASSIGN_OR_RETURN(const bool cuts, CutsParameters(*graph, config, request_.options.strategy));
  return named_.emplace(tp, cuts).first->second;
}

absl::StatusOr<const StrategySpec*> PlanOracle::StrategyOf(const ParallelConfig& config) {
  if (config.tp == 1 || !request_.lay_out_unnamed) return nullptr;
  MGC_ASSIGN_OR_RETURN(const bool is_named, CutsParametersOver(config.tp));
  if (is_named) return nullptr;
  const auto known = strategies_.find(KeyOf(config));
  if (known != strategies_.end()) return &known->second;
  CompileOptions options = request_.options;
  options.parallel = ProfiledConfig(config);
  options.parallel.recompute = RecomputeKind::kNone;
  options.parallel.allow_replicated = false;
  MGC_ASSIGN_OR_RETURN(Graph graph, request_.build(options.parallel));
  std::vector<std::string> notes;
  graph = PrepareModel(std::move(graph), &notes);
  SearchLimits limits;
  limits.plans = kTablesAKey;
  MGC_ASSIGN_OR_RETURN(const ClassLayout layout,
                       LayOutByClasses(graph, request_.dims, options, limits));
  return &strategies_.emplace(KeyOf(config), layout.strategy).first->second;
}

absl::StatusOr<ProfilesByKind> PlanOracle::ProfilesOf(size_t group) {
  ProfilesByKind profiles = {};
  MGC_ASSIGN_OR_RETURN(profiles[FirstKind()], ProfileOf(group));
  for (size_t k = 0; HasFreeRecomputation() && k < kNumRecomputeKinds; ++k) {
    MGC_ASSIGN_OR_RETURN(profiles[k], ProfileOf(group, k));
  }
  return profiles;
}

bool PlanOracle::HasFreeCuts(const ParallelConfig& config) const {
  return !request_.fixed.cuts && config.pp > 1 && request_.dims.layers > 0 &&
         request_.dims.places.named;
}

absl::StatusOr<absl::optional<LayerChoice>> PlanOracle::ChooseFor(size_t group, size_t index,
                                                                  int64_t memory) {
  const ParallelConfig config = space_.ConfigOf(group, index);
  MGC_ASSIGN_OR_RETURN(const ModelProfile* first, ProfileOf(group));
  if (first == nullptr) return absl::optional<LayerChoice>();
  const LayerChoices choices(config, request_.dims, request_.options.machine, *first);
  MGC_ASSIGN_OR_RETURN(absl::optional<LayerChoice> choice,
                       ChooseCut(group, choices, memory, HasFreeCuts(config)));
  // Where a rank has several chunks, stages that differ make each other wait in queues too, of
  // which estimates know nothing.
  if (config.vp <= 1 || !choice.has_value() || !choice->config.layout.layout) return choice;
  MGC_ASSIGN_OR_RETURN(absl::optional<LayerChoice> even, ChooseCut(group, choices, memory, false));
  if (!even.has_value()) return choice;
  const int64_t least_gain = even->estimate_ns / kLeastGain;
  return choice->estimate_ns < even->estimate_ns - least_gain ? choice : even;
}

absl::StatusOr<absl::optional<LayerChoice>> PlanOracle::ChooseCut(size_t group,
                                                                  const LayerChoices& choices,
                                                                  int64_t memory, bool free_cuts) {
  ProfilesByKind profiles = {};
  MGC_ASSIGN_OR_RETURN(profiles[FirstKind()], ProfileOf(group));
  absl::optional<LayerChoice> choice = choices.Choose(profiles, memory, free_cuts, &schedules_);
  if (!HasFreeRecomputation() && choice.has_value()) {
    choice->config.recompute = request_.options.parallel.recompute;
  }
  if (choice.has_value() || !HasFreeRecomputation()) return choice;
  MGC_ASSIGN_OR_RETURN(profiles, ProfilesOf(group));
  return choices.Choose(profiles, memory, free_cuts, &schedules_);
}

absl::StatusOr<int64_t> PlanOracle::RecomputedNs(size_t group, size_t index, int64_t memory) {
  if (!HasFreeRecomputation()) return 0;
  const ParallelConfig config = space_.ConfigOf(group, index);
  MGC_ASSIGN_OR_RETURN(const ProfilesByKind profiles, ProfilesOf(group));
  return LayerChoices(config, request_.dims, request_.options.machine, *profiles[FirstKind()])
      .ExpectRecomputedNs(profiles, memory);
}

absl::StatusOr<std::shared_ptr<const ModelProfile>> PlanOracle::MixedProfileOf(
    size_t group, const ParallelConfig& config) {
  ProfilesByKind profiles = {};
  if (!HasFreeRecomputation()) {
    MGC_ASSIGN_OR_RETURN(const ModelProfile* only, ProfileOf(group));
    return std::shared_ptr<const ModelProfile>(std::shared_ptr<void>(), only);
  }
  for (size_t k = 0; k < kNumRecomputeKinds; ++k) {
    if (k > 0 && !config.recompute.Has(kRecomputeKinds[k])) continue;
    MGC_ASSIGN_OR_RETURN(profiles[k], ProfileOf(group, k));
    if (profiles[k] == nullptr) return nullptr;
  }
  return MixProfiles(profiles, config.recompute);
}

absl::StatusOr<absl::optional<PlanBound>> PlanOracle::BoundOf(size_t group,
                                                              const ParallelConfig& config) {
  MGC_ASSIGN_OR_RETURN(const auto mixed, MixedProfileOf(group, config));
  if (mixed == nullptr) return absl::optional<PlanBound>();
  const CheckedConfig checked = CheckConfig(config, request_.dims);
  return BoundPlan(PlanSpread(config, checked, *mixed), request_.options.machine);
}

absl::StatusOr<int64_t> PlanOracle::EstimateOf(size_t group, const ParallelConfig& config) {
  MGC_ASSIGN_OR_RETURN(const auto mixed, MixedProfileOf(group, config));
  if (mixed == nullptr) return 0;
  const CheckedConfig checked = CheckConfig(config, request_.dims);
  return EstimateStepNs(PlanSpread(config, checked, *mixed), request_.options.machine, &schedules_);
}

bool PlanOracle::IsCompiled(const ParallelConfig& config) const {
  return plans_.count(FlagsText(config)) > 0;
}

absl::StatusOr<FoundPlan> PlanOracle::Simulate(const ParallelConfig& config, bool evaluation) {
  MGC_ASSIGN_OR_RETURN(const std::shared_ptr<ModelCompiler> model, models_->For(config));
  MGC_ASSIGN_OR_RETURN(const StrategySpec* strategy, StrategyOf(config));
  OrderScope scope = kSearchScope;
  scope.evaluation = evaluation;
  CompileOptions options = request_.options;
  if (strategy != nullptr) options.strategy = *strategy;
  MGC_ASSIGN_OR_RETURN(FoundPlan found,
                       CompileTo(*model, std::move(options), config, scope, false, nullptr));
  if (strategy != nullptr) found.strategy = *strategy;
  return found;
}

absl::StatusOr<const FoundPlan*> PlanOracle::PlanOf(const ParallelConfig& config) {
  const std::string flags = FlagsText(config);
  const auto known = plans_.find(flags);
  if (known != plans_.end()) return known->second.get();
  absl::StatusOr<FoundPlan> made = Simulate(config, false);
  NoteRefusal(made.status());
  MGC_ASSIGN_OR_RETURN(auto plan, OrNull(std::move(made)));
  return plans_.emplace(flags, std::move(plan)).first->second.get();
}

absl::StatusOr<FoundPlan> PlanOracle::WholeOf(const FoundPlan& plan) {
  const std::string flags = FlagsText(plan.config);
  FoundPlan& known = *plans_.at(flags);
  if (!whole_.insert(flags).second) return known;
  MGC_ASSIGN_OR_RETURN(known, Simulate(plan.config, true));
  return known;
}

std::vector<FoundPlan> PlanOracle::Compiled() const {
  std::vector<FoundPlan> compiled;
  for (const auto& [flags, plan] : plans_) {
    if (plan != nullptr) compiled.push_back(*plan);
  }
  return compiled;
}

absl::StatusOr<Plan> CompileFound(const SearchRequest& request, const ParallelConfig& config) {
  MGC_ASSIGN_OR_RETURN(Graph graph, request.build(config));
  ModelCompiler model(std::move(graph), request.dims);
  Plan plan;
  MGC_RETURN_IF_ERROR(CompileTo(model, request.options, config, {}, true, &plan).status());
  return plan;
}

absl::StatusOr<FoundPlan> MeasureFound(const SearchRequest& request, const ParallelConfig& config,
                                       Plan* plan, OrderScope scope) {
  ModelCompilers models(request.build, request.dims);
  return MeasureFound(models, request, config, plan, scope);
}

absl::StatusOr<FoundPlan> MeasureFound(ModelCompilers& models, const SearchRequest& request,
                                       const ParallelConfig& config, Plan* plan, OrderScope scope) {
  MGC_ASSIGN_OR_RETURN(const std::shared_ptr<ModelCompiler> model, models.For(config));
  return CompileTo(*model, request.options, config, scope, false, plan);
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

}  // namespace mgc
