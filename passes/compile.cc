#include "passes/compile.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/model_layers.h"
#include "passes/config/check_config.h"
#include "passes/cut_layers.h"
#include "passes/fold/fold_model.h"
#include "passes/graph/assign_optimizers.h"
#include "passes/graph/differentiate.h"
#include "passes/graph/dim_classes.h"
#include "passes/graph/freeze_unused.h"
#include "passes/graph/fuse.h"
#include "passes/graph/narrow.h"
#include "passes/graph/overlap.h"
#include "passes/graph/shard/partition.h"
#include "passes/graph/simplify.h"
#include "passes/graph/unpack.h"
#include "passes/pass_adapters.h"
#include "passes/plan/allocate.h"

namespace mgc {
namespace {

using Form = absl::StatusOr<PassForm>;
using Context = const PassContext&;
constexpr auto kLogical = PassLevel::kLogical;
constexpr auto kTraining = PassLevel::kTraining;
constexpr auto kSharded = PassLevel::kSharded;
constexpr auto kLocal = PassLevel::kLocal;

absl::StatusOr<PassForm> RunUnpack(PassForm form, Context /*context*/) {
  StepGraphs graphs = std::get<StepGraphs>(std::move(form));
  graphs.train = Unpack(std::move(graphs.train), &graphs.notes);
  return graphs;
}

absl::StatusOr<PassForm> RunFreezeUnused(PassForm form, Context /*context*/) {
  StepGraphs graphs = std::get<StepGraphs>(std::move(form));
  graphs.train = FreezeUnused(std::move(graphs.train), &graphs.notes);
  return graphs;
}

// A graph that names no layers has one for each stage.
absl::StatusOr<Graph> WithLayers(Graph logical, Context context) {
  if (LayersOf(logical).named) return logical;
  MGC_ASSIGN_OR_RETURN(const CutRequest request, CutRequestOf(context.parallel, context.placement));
  return CutIntoLayers(logical, request, context.machine);
}

// The compiler.
constexpr PassEntry kPasses[] = {
    // First, so that less is differentiated and residual sums are flat.
    {"simplify", "Removes what does nothing.", kLogical, kLogical,
     [](PassForm form, Context) { return OnGraphs(std::move(form), Simplify); }},

    // Before sharding: forward, backward and optimizer are then sharded by one mechanism.
    {"differentiate", "Appends backward and the update.", kLogical, kTraining, RunDifferentiate},

    // Again: the maximum behind the stop-gradient has no backward now.
    {"simplify", "Removes what does nothing.", kTraining, kTraining,
     [](PassForm form, Context) { return OnGraphs(std::move(form), Simplify); }},

    // On the differentiated step, in which seeds, means and the optimizer stand; before narrow, for
    // gradients are rounded as they are scaled.
    {"scale_loss", "Scales the loss where gradients are of f16.", kTraining, kTraining,
     RunScaleLoss},

    // Forward and backward by one table; before sharding, for a collective moves the type of its
    // value.
    {"narrow", "Computes in bf16 or f16 where asked, with sums of f32.", kTraining, kTraining,
     [](PassForm form, Context context) {
       return OnGraphs(std::move(form), [&context](const Graph& graph) {
         return Narrow(graph, context.parallel.compute_type);
       });
     }},

    // All shardings are decided in one sweep over the whole step, then spelled out as collectives.
    {"shard", "Gives every value a sharding.", kTraining, kSharded, RunShard},
    {"partition", "Spells reshards out as collectives.", kSharded, kLocal,
     [](PassForm form, Context) { return OnGraphs(std::move(form), Partition); }},

    // Behind partition, which says which sums are paid over which ranks; before stage, which starts
    // them.
    {"narrow_sums", "Sums gradients over ranks in bf16 where asked.", kLocal, kLocal,
     RunNarrowSums},

    // On the local graph: what is computed again includes its collectives.
    {"recompute", "Computes again what backward would keep.", kLocal, kLocal, RunRecompute},

    // After recompute, which decides what forward must keep apart for backward; before stage, so
    // that layers fold in their final form.
    {"fuse", "Replaces small ops by fused ones.", kLocal, kLocal,
     [](PassForm form, Context) { return OnGraphs(std::move(form), Fuse); }},

    // After fuse, which decides what is one node; before overlap, which starts a piece's exchange
    // before the next product.
    {"split_products", "Cuts products beside collectives into pieces where asked.", kLocal, kLocal,
     RunSplitProducts},

    // After fuse, which decides what is one node; before stage, which puts waits before readers.
    {"overlap", "Lets compute run beside a layer's collectives.", kLocal, kLocal,
     [](PassForm form, Context) { return OnGraphs(std::move(form), Overlap); }},

    // From here on layers are folded: graph to plan.
    {"stage", "Cuts the step into chunks and segments.", kLocal, PassLevel::kStaged, RunStage},

    // Which action before which; then, with costs, which transfer between which collectives; then,
    // with all lifetimes known, which byte.
    {"schedule", "Lists every stage's forwards and backwards.", PassLevel::kStaged,
     PassLevel::kScheduled, RunSchedule},
    {"order", "Puts all communication in one order.", PassLevel::kScheduled, PassLevel::kOrdered,
     RunOrder},
    {"allocate", "Gives everything its bytes.", PassLevel::kOrdered, PassLevel::kPlan, RunAllocate},

    // By name only: what Compile does before all passes, for the plan is of the model that comes
    // out, with parameters that something trains, names for its dims, layers to cut between.
    {"unpack", "Makes parameters of the parts in which others are read.", kLogical, kLogical,
     RunUnpack},
    {"freeze_unused", "Keeps parameters that no loss depends on as they are.", kLogical, kLogical,
     RunFreezeUnused},
    {"assign_optimizers", "Says of each parameter which optimizer steps it.", kLogical, kLogical,
     [](PassForm form, Context context) {
       return OnGraphs(std::move(form), [&context](const Graph& graph) {
         return AssignOptimizers(graph, context.parallel.optimizer);
       });
     }},
    {"name_dims", "Names the dims that have no name.", kLogical, kLogical,
     [](PassForm form, Context) { return OnGraphs(std::move(form), NameDims); }},
    {"cut_layers", "Gives a graph that names no layers one for each stage.", kLogical, kLogical,
     [](PassForm form, Context context) {
       return OnGraphs(std::move(form),
                       [&context](const Graph& graph) { return WithLayers(graph, context); });
     }},

    // By name only: what differentiate makes beside the training graph.
    {"evaluation", "Forward only: dropout off, the loss reported.", kLogical, kTraining,
     [](PassForm form, Context) { return OnGraphs(std::move(form), Evaluation); }},
};

absl::StatusOr<Plan> RunPasses(StepGraphs graphs, const PassContext& context,
                               const RunOptions& options) {
  PassForm form = std::move(graphs);
  for (const PassEntry& pass : CompilePasses()) {
    MGC_ASSIGN_OR_RETURN(form, RunPass(pass, std::move(form), context, options));
  }
  return std::get<Plan>(std::move(form));
}

// What is wrong with a model is said of all its layers: an error of the folded one is none.
absl::StatusOr<Plan> RunOnFewLayers(const Graph& model, const std::vector<std::string>& notes,
                                    PassContext context, const RunOptions& options) {
  if (TreatsLayersAlike(context.strategy, context.placement)) {
    absl::optional<FoldedModel> folded = FoldModel(model, context.parallel.recompute);
    if (folded.has_value()) {
      context.layers = std::move(folded->layers);
      absl::StatusOr<Plan> plan =
          RunPasses({std::move(folded->graph), absl::nullopt, notes}, context, options);
      if (plan.ok() || absl::IsCancelled(plan.status())) return plan;
      context.layers.reset();
    }
  }
  return RunPasses({model, absl::nullopt, notes}, context, options);
}

}  // namespace

bool IsRefusal(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status);
}

Graph PrepareModel(const Graph& logical, std::vector<std::string>* notes) {
  return NameDims(FreezeUnused(Unpack(logical, notes), notes));
}

absl::StatusOr<Plan> Compile(const Graph& logical, const ModelDims& dims,
                             const CompileOptions& options) {
  const ParallelConfig& config = options.parallel;
  CheckedConfig checked = CheckConfig(config, WithLayersOf(logical, dims));
  MGC_RETURN_IF_ERROR(checked.violations.ToStatus());
  const ScheduleSpec schedule{config.schedule, config.pp, checked.vp, checked.micro_batches,
                              config.group_size};
  PassContext context{config,   options.strategy, std::move(checked.placement),
                      schedule, options.machine,  options.order,
                      nullptr,  options.flags};
  std::vector<std::string> notes;
  MGC_ASSIGN_OR_RETURN(Graph prepared,
                       AssignOptimizers(PrepareModel(logical, &notes), config.optimizer));
  MGC_ASSIGN_OR_RETURN(const Graph model, WithLayers(std::move(prepared), context));
  context.model = &model;
  MGC_ASSIGN_OR_RETURN(
      Plan plan, options.fold_layers
                     ? RunOnFewLayers(model, notes, context, options.run)
                     : RunPasses({model, absl::nullopt, std::move(notes)}, context, options.run));
  if (options.limit_memory) MGC_RETURN_IF_ERROR(CheckFits(plan));
  return plan;
}

absl::Span<const PassEntry> AllPasses() { return kPasses; }

absl::Span<const PassEntry> CompilePasses() {
  const PassEntry* last =
      std::find_if(std::begin(kPasses), std::end(kPasses),
                   [](const PassEntry& pass) { return pass.to == PassLevel::kPlan; });
  return absl::MakeConstSpan(std::begin(kPasses), last + 1);
}

}  // namespace mgc
