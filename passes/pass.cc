#include "passes/pass.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/diagnostic.h"
#include "graph/base/status.h"
#include "graph/ir/check.h"
#include "graph/ir/model_layers.h"
#include "graph/plan/plan_check.h"
#include "passes/plan/forms/check_forms.h"

namespace mgc {
namespace {

int64_t NowNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// What breaks the level of a form.
struct LevelViolations {
  const PassContext& context;

  Diagnostics operator()(const StepGraphs& graphs) const {
    Diagnostics violations = FindViolations(graphs.train);
    if (graphs.eval.has_value()) violations.Append(FindViolations(*graphs.eval));
    return violations;
  }
  Diagnostics operator()(const Plan& plan) const { return FindPlanViolations(plan); }
  template <typename PlanForm>
  Diagnostics operator()(const PlanForm& form) const {
    MGC_CHECK(context.model != nullptr) << "a plan in the making is of a model";
    return FindViolations(form, *context.model);
  }
};

// A graph that breaks its level is our mistake; a plan, finished or in the making, may break its
// rules by what the user asks.
absl::Status CheckAfter(absl::string_view pass, const PassForm& form, const PassContext& context) {
  const absl::StatusCode code = std::holds_alternative<StepGraphs>(form)
                                    ? absl::StatusCode::kInternal
                                    : absl::StatusCode::kInvalidArgument;
  return Annotate(std::visit(LevelViolations{context}, form).ToStatus(code),
                  absl::StrCat("after pass ", pass));
}

}  // namespace

absl::string_view NameOf(PassLevel level) {
  constexpr absl::string_view kNames[] = {"logical", "training",  "sharded", "local",
                                          "staged",  "scheduled", "ordered", "plan"};
  return kNames[static_cast<size_t>(level)];
}

PassLevel LevelOf(const PassForm& form) {
  if (const auto* graphs = std::get_if<StepGraphs>(&form)) {
    return static_cast<PassLevel>(graphs->train.level());
  }
  return static_cast<PassLevel>(static_cast<size_t>(PassLevel::kLocal) + form.index());
}

absl::StatusOr<PassContext> ContextOf(const ParallelConfig& parallel, const Graph& model) {
  PassContext context;
  context.parallel = parallel;
  const ModelDims dims = WithLayersOf(model, {});
  LayerPlacementResult placed = PlaceLayers(
      {dims.layers, /*mtp_layers=*/0, parallel.pp, parallel.vp, parallel.layout, dims.places});
  MGC_RETURN_IF_ERROR(placed.violations.ToStatus());
  context.placement = std::move(placed.placement);
  context.schedule = {parallel.schedule, parallel.pp, context.placement.vp,
                      MicroBatchesPerStep(parallel), parallel.group_size};
  context.machine = MachinePresets().front();
  context.model = &model;
  return context;
}

absl::StatusOr<PassForm> RunPass(const PassEntry& pass, PassForm form, const PassContext& context,
                                 const RunOptions& options) {
  if (LevelOf(form) != pass.from) {
    return absl::InvalidArgumentError(absl::StrCat("pass ", pass.name, " takes the ",
                                                   NameOf(pass.from), " level, this is ",
                                                   NameOf(LevelOf(form)), " [pass_c1]"));
  }
  const int64_t begin = NowNs();
  MGC_ASSIGN_OR_RETURN(PassForm result, pass.run(std::move(form), context));
  const int64_t ns = NowNs() - begin;
  MGC_CHECK(LevelOf(result) == pass.to) << pass.name << " gave " << NameOf(LevelOf(result));
  if (options.check) MGC_RETURN_IF_ERROR(CheckAfter(pass.name, result, context));
  if (options.after_pass && !options.after_pass({pass.name, ns, result})) {
    return absl::CancelledError(absl::StrCat("stopped after ", pass.name));
  }
  return result;
}

std::vector<absl::string_view> PassNames(absl::Span<const PassEntry> passes) {
  std::vector<absl::string_view> names;
  for (const PassEntry& pass : passes) {
    if (std::find(names.begin(), names.end(), pass.name) == names.end()) names.push_back(pass.name);
  }
  return names;
}

absl::StatusOr<PassForm> RunPassByName(absl::Span<const PassEntry> passes, absl::string_view name,
                                       PassForm form, const PassContext& context,
                                       const RunOptions& options) {
  const PassEntry* found = nullptr;
  for (const PassEntry& pass : passes) {
    if (pass.name != name) continue;
    if (found == nullptr || pass.from == LevelOf(form)) found = &pass;
  }
  if (found != nullptr) return RunPass(*found, std::move(form), context, options);
  return absl::NotFoundError(
      absl::StrCat("unknown pass `", name, "`; known: ", absl::StrJoin(PassNames(passes), ", ")));
}

}  // namespace mgc
