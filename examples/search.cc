// Which plan for a model and a machine is the fastest, how long is its step, does it fit? The
// search and the estimate behind `mgc-compile --auto` and `--estimate-only`, as functions.
//   bazel run //examples:search
#include <iostream>
#include <string>
#include <vector>

#include "frontends/model_config.h"
#include "frontends/models.h"
#include "graph/base/status.h"
#include "graph/base/units.h"
#include "graph/types/machine.h"
#include "graph/verify/verify.h"
#include "passes/compile.h"
#include "passes/config/config_flags.h"
#include "passes/search/plans/search_plans.h"
#include "tools/advice/estimate_plan.h"

namespace mgc {
namespace {

// GPT-2 on four ranks of a machine. Any graph does: `build` makes it for the micro-batch of a
// configuration, over all data-parallel ranks.
absl::StatusOr<SearchRequest> Request() {
  MGC_ASSIGN_OR_RETURN(const ModelConfig gpt2, LoadModelPreset("gpt2-124m"));
  SearchRequest request;
  MGC_ASSIGN_OR_RETURN(request.options.machine, FindMachinePreset("a100x8"));
  ParallelConfig& config = request.options.parallel;
  config.world_size = 4;
  config.global_batch_size = 32;
  config.seq_length = 1024;
  config.compute_type = DType::kBF16;
  request.dims = DimsOf(gpt2);
  request.fixed.cp = true;  // the search leaves cp as it is; all else is open
  request.build = [gpt2](const ParallelConfig& of) {
    return BuildModel(gpt2, of.micro_batch_size * DataParallelSize(of), of.seq_length);
  };
  return request;
}

absl::Status Search() {
  MGC_ASSIGN_OR_RETURN(SearchRequest request, Request());
  MGC_ASSIGN_OR_RETURN(const FoundPlans found, SearchPlans(request));
  const FoundPlan& best = found.ranked.front();
  std::cout << "best: " << FlagsText(best.config) << "\n";

  // What another configuration comes to, without a plan: here one that holds everything on one
  // rank.
  request.options.parallel.world_size = 1;
  MGC_ASSIGN_OR_RETURN(const PlanEstimate alone, EstimatePlan(request));
  std::cout << "on one rank: " << EstimateText(alone, request.options.machine);

  // The plan of the best, proved.
  CompileOptions options = request.options;
  options.parallel = best.config;
  MGC_ASSIGN_OR_RETURN(const Graph model, request.build(best.config));
  MGC_ASSIGN_OR_RETURN(Plan plan, Compile(model, request.dims, options));
  MGC_RETURN_IF_ERROR(ProvePlan(&plan));
  std::cout << "plan: " << plan.mesh.world_size() << " ranks, " << BytesText(PeakBytes(plan))
            << " at most, as found: " << (plan.predicted_step_ns == best.step_ns ? "yes" : "no")
            << "\n";
  return absl::OkStatus();
}

}  // namespace
}  // namespace mgc

int main() {
  const absl::Status status = mgc::Search();
  if (!status.ok()) std::cerr << "error: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
