#include "passes/compile.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "passes/allocate.h"
#include "passes/check_config.h"
#include "passes/differentiate.h"
#include "passes/fuse.h"
#include "passes/partition.h"
#include "passes/recompute.h"
#include "passes/rewrite.h"
#include "passes/shard.h"
#include "passes/simplify.h"
#include "passes/stage.h"
#include "passes/strategy.h"

namespace mgc {
namespace {

constexpr absl::string_view kGraphPasses[] = {"simplify",  "differentiate", "shard",
                                              "partition", "recompute",     "fuse"};

// Reports a finished pass; an error ends the compilation.
absl::Status After(const CompileOptions& options, absl::string_view pass, const Graph& graph) {
  if (!options.after_pass || options.after_pass(pass, graph)) return absl::OkStatus();
  return absl::CancelledError(absl::StrCat("stopped after ", pass));
}

// Training graph to local graph.
absl::StatusOr<Graph> Localize(const Graph& training, const Mesh& mesh, const Strategy& strategy,
                               const CompileOptions& options, bool report,
                               std::vector<std::string>* notes) {
  MGC_ASSIGN_OR_RETURN(Sharded sharded, Shard(training, mesh, strategy));
  if (report) MGC_RETURN_IF_ERROR(After(options, "shard", sharded.graph));
  notes->insert(notes->end(), sharded.notes.begin(), sharded.notes.end());
  Graph local = Partition(sharded.graph);
  if (report) MGC_RETURN_IF_ERROR(After(options, "partition", local));
  return local;
}

// A graph that speaks of no layer is one layer.
Graph WithLayers(const Graph& logical) {
  for (const Node& node : logical.nodes()) {
    if (node.layer != kNoLayer) return logical;
  }
  Rewriter rewriter(logical, Level::kLogical);
  rewriter.builder().set_num_layers(1);
  for (Node node : logical.nodes()) {
    node.layer = 0;
    rewriter.Copy(node);
  }
  return std::move(rewriter).Finish();
}

void FillHeader(const Graph& logical, const CompileOptions& options, const CheckedConfig& checked,
                Plan* plan) {
  plan->name = logical.name();
  plan->options = options.flags;
  plan->machine = options.machine;
  plan->model = logical;
  plan->micro_batch_size = options.parallel.micro_batch_size;
  plan->global_batch_size = options.parallel.global_batch_size;
  plan->num_micro_batches = checked.micro_batches;
  plan->seq_length = options.parallel.seq_length;
  for (const Value& value : logical.values()) {
    for (const Dim& dim : value.type.dims) {
      if (dim.name == "vocab") plan->vocab = dim.size;
    }
  }
}

// One rank's programs, and what to tell of how they came about.
struct LocalGraphs {
  Graph training;
  Graph evaluation;
  std::vector<std::string> notes;
};

// The passes from graph to graph.
absl::StatusOr<LocalGraphs> ToLocal(const Graph& logical, const ModelDims& dims,
                                    const CompileOptions& options) {
  const ParallelConfig& config = options.parallel;
  // First, so that less is differentiated and residual sums are flat.
  const Graph simple = Simplify(WithLayers(logical));
  MGC_RETURN_IF_ERROR(After(options, "simplify", simple));

  // Before sharding: forward, backward and optimizer are then sharded by one mechanism.
  MGC_ASSIGN_OR_RETURN(Graph training, Differentiate(simple));
  // Again: the maximum behind the stop-gradient has no backward now.
  training = Simplify(training);
  MGC_RETURN_IF_ERROR(After(options, "differentiate", training));
  MGC_ASSIGN_OR_RETURN(Graph evaluation, Evaluation(simple));
  evaluation = Simplify(evaluation);

  // All layouts are decided in one sweep over the whole step, then spelled out as collectives.
  MGC_ASSIGN_OR_RETURN(const Mesh mesh, MeshOf(config, dims.kv_heads));
  const Strategy strategy = MegatronStrategy(config, dims.kv_heads, mesh);
  LocalGraphs local;
  std::vector<std::string> same_notes;
  MGC_ASSIGN_OR_RETURN(local.training,
                       Localize(training, mesh, strategy, options, true, &local.notes));
  MGC_ASSIGN_OR_RETURN(local.evaluation,
                       Localize(evaluation, mesh, strategy, options, false, &same_notes));

  // On the local graph: what is computed again includes its collectives.
  local.training = DropDeadNodes(Recompute(local.training, config.recompute));
  MGC_RETURN_IF_ERROR(After(options, "recompute", local.training));

  // After recompute, which decides what forward must keep apart for backward; before stage, so that
  // layers fold in their final form.
  local.training = Fuse(local.training);
  local.evaluation = Fuse(local.evaluation);
  MGC_RETURN_IF_ERROR(After(options, "fuse", local.training));
  return local;
}

absl::Status CheckMemory(const Plan& plan) {
  std::string errors;
  for (const PlanClass& c : plan.classes) {
    const int64_t needed = c.memory.peak + c.memory.workspace;
    if (needed <= plan.machine.memory) continue;
    absl::StrAppend(&errors, errors.empty() ? "" : "\n", "error: pipeline rank ", c.coordinate,
                    " needs ", needed, " bytes, a device of ", plan.machine.name, " has ",
                    plan.machine.memory,
                    " [R8]; more --tp, --pp, --zero 1 or --recompute full "
                    "need less");
  }
  return errors.empty() ? absl::OkStatus() : absl::InvalidArgumentError(errors);
}

}  // namespace

absl::Span<const absl::string_view> GraphPassNames() { return kGraphPasses; }

absl::StatusOr<Plan> Compile(const Graph& logical, const ModelDims& dims,
                             const CompileOptions& options) {
  const ParallelConfig& config = options.parallel;
  const CheckedConfig checked = CheckConfig(config, dims);
  if (!checked.violations.empty()) {
    return absl::InvalidArgumentError(ToString(checked.violations));
  }
  MGC_ASSIGN_OR_RETURN(LocalGraphs local, ToLocal(logical, dims, options));

  // From here on layers are folded: graph to plan.
  MGC_ASSIGN_OR_RETURN(Plan plan, Stage(local.training, local.evaluation, checked.placement));
  FillHeader(logical, options, checked, &plan);
  plan.notes = std::move(local.notes);

  // Which action before which; then, with costs, which transfer between which collectives; then,
  // with all lifetimes known, which byte.
  ScheduleSpec spec{config.schedule, config.pp, checked.vp, checked.micro_batches,
                    config.group_size};
  MGC_ASSIGN_OR_RETURN(const PipelineSchedule schedule, BuildSchedule(spec));
  std::vector<int> pools;
  MGC_ASSIGN_OR_RETURN(SimulatedStep step,
                       Order(schedule, &plan, &pools, options.simulated != nullptr));
  plan.predicted_step_ns = step.makespan_ns;
  if (options.simulated != nullptr) *options.simulated = std::move(step);
  Allocate(pools, &plan);
  if (options.limit_memory) MGC_RETURN_IF_ERROR(CheckMemory(plan));
  return plan;
}

}  // namespace mgc
