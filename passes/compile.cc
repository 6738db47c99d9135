#include "passes/compile.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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
#include "passes/graph/hold_narrow.h"
#include "passes/graph/keep_parameters.h"
#include "passes/graph/narrow.h"
#include "passes/graph/overlap.h"
#include "passes/graph/quantize.h"
#include "passes/graph/resize.h"
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

absl::StatusOr<PassForm> RunQuantize(PassForm form, Context /*context*/) {
  StepGraphs graphs = std::get<StepGraphs>(std::move(form));
  MGC_ASSIGN_OR_RETURN(graphs.train, Quantize(graphs.train));
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

    // Behind narrow, which decides what is read in which type.
    {"hold_narrow", "Holds what nothing trains in the type that it is read in.", kTraining,
     kTraining, [](PassForm form, Context) { return OnGraphs(std::move(form), HoldNarrow); }},

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
    {"keep_parameters", "Trains nothing: the step is an evaluation.", kLogical, kLogical,
     [](PassForm form, Context) { return OnGraphs(std::move(form), KeepParameters); }},
    {"quantize", "Makes whole numbers of the weights of products that nothing trains.", kLogical,
     kLogical, RunQuantize},
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

absl::StatusOr<PassForm> RunPasses(absl::Span<const PassEntry> passes, PassForm form,
                                   const PassContext& context, const RunOptions& options) {
  for (const PassEntry& pass : passes) {
    MGC_ASSIGN_OR_RETURN(form, RunPass(pass, std::move(form), context, options));
  }
  return form;
}

// Up to here passes see no mesh.
size_t NumBeforeShard() {
  const absl::Span<const PassEntry> passes = CompilePasses();
  const auto shard = std::find_if(passes.begin(), passes.end(), [](const PassEntry& pass) {
    return pass.to == PassLevel::kSharded;
  });
  return static_cast<size_t>(shard - passes.begin());
}

absl::StatusOr<StepGraphs> RunBeforeShard(StepGraphs graphs, const PassContext& context,
                                          const RunOptions& options) {
  const auto passes = CompilePasses().first(NumBeforeShard());
  MGC_ASSIGN_OR_RETURN(PassForm form, RunPasses(passes, std::move(graphs), context, options));
  return std::get<StepGraphs>(std::move(form));
}

StepGraphs CopyOf(const StepGraphs& graphs, bool evaluation) {
  return {graphs.train, evaluation ? graphs.eval : absl::nullopt, graphs.notes};
}

absl::StatusOr<Plan> RunFromShard(StepGraphs graphs, const PassContext& context,
                                  const CompileOptions& options) {
  if (!options.evaluation) graphs.eval.reset();
  const auto passes = CompilePasses().subspan(NumBeforeShard());
  MGC_ASSIGN_OR_RETURN(PassForm form, RunPasses(passes, std::move(graphs), context, options.run));
  return std::get<Plan>(std::move(form));
}

}  // namespace

bool IsRefusal(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status);
}

Graph PrepareModel(Graph logical, std::vector<std::string>* notes) {
  return NameDims(FreezeUnused(Unpack(std::move(logical), notes), notes));
}

ModelCompiler::ModelCompiler(Graph logical, const ModelDims& dims, Build again)
    : dims_(WithLayersOf(logical, dims)), again_(std::move(again)), logical_(std::move(logical)) {}

std::shared_ptr<ModelCompiler> ModelCompiler::OfOtherSamples(const ModelCompiler& other,
                                                             int64_t samples, Build again) {
  if (!other.let_go_) return nullptr;
  const Graph& few = other.folder_->few()->graph;
  Resized resized = Resize(few, SamplesOf(few), samples, "T1");
  if (!resized.graph.has_value() || !resized.notes.empty()) return nullptr;
  std::shared_ptr<ModelCompiler> made(new ModelCompiler(other.dims_, std::move(again)));
  made->folder_.emplace(*other.folder_, *std::move(resized.graph));
  made->let_go_ = true;
  made->notes_ = other.notes_;
  return made;
}

int64_t ModelCompiler::num_nodes() const {
  const size_t prepared = model_.has_value() && model_->ok() ? (*model_)->nodes().size() : 0;
  return static_cast<int64_t>(logical_.nodes().size() + prepared);
}

absl::StatusOr<const Graph*> ModelCompiler::Model(const OptimizerConfig& optimizer) {
  if (!model_.has_value()) {
    if (let_go_) {
      MGC_ASSIGN_OR_RETURN(logical_, again_());
    }
    notes_.clear();
    model_ = AssignOptimizers(PrepareModel(std::move(logical_), &notes_), optimizer);
    logical_ = Graph();
  }
  MGC_RETURN_IF_ERROR(model_->status());
  return &**model_;
}

absl::StatusOr<const ModelFolder*> ModelCompiler::Folder(const OptimizerConfig& optimizer) {
  if (!folder_.has_value()) {
    MGC_ASSIGN_OR_RETURN(const Graph* model, Model(optimizer));
    folder_.emplace(*model);
    let_go_ = again_ != nullptr && folder_->KeepFew();
    if (let_go_) model_.reset();
  }
  return &*folder_;
}

absl::StatusOr<const Graph*> ModelCompiler::ModelOrFew(const OptimizerConfig& optimizer) {
  MGC_ASSIGN_OR_RETURN(const ModelFolder* folder, Folder(optimizer));
  return let_go_ ? &folder->few()->graph : Model(optimizer);
}

absl::StatusOr<std::shared_ptr<const ModelCompiler::FewLayers>> ModelCompiler::Fold(
    const ModelFolder& folder, const PassContext& context, const RunOptions& options) {
  const Recomputation& recomputation = context.parallel.recompute;
  // A model that is cut for each configuration anew is another one each time.
  const bool is_own = folder_.has_value() && &folder == &*folder_;
  const bool is_kept = is_own && recomputation.by_layer().empty();
  if (is_kept && few_ != nullptr) return few_;
  absl::optional<FoldedModel> folded = folder.Fold(recomputation);
  if (!folded.has_value()) return nullptr;
  MGC_ASSIGN_OR_RETURN(StepGraphs graphs,
                       RunBeforeShard({folded->graph, absl::nullopt, notes_}, context, options));
  auto few = std::make_shared<const FewLayers>(
      FewLayers{std::move(folded->graph), std::move(graphs), std::move(folded->layers)});
  if (is_kept) few_ = few;
  return few;
}

// An error of kept layers is none, as below.
absl::StatusOr<absl::optional<Plan>> ModelCompiler::CompileKept(PassContext context,
                                                                const CompileOptions& options) {
  *options.kept = LayerMap(static_cast<int>(dims_.layers));
  const bool folds = options.fold_layers && context.parallel.pp == 1 &&
                     context.parallel.recompute.by_layer().empty() &&
                     TreatsLayersAlike(context.strategy, context.placement);
  if (!folds) return absl::optional<Plan>();
  MGC_ASSIGN_OR_RETURN(const ModelFolder* folder, Folder(context.parallel.optimizer));
  MGC_ASSIGN_OR_RETURN(const auto few, Fold(*folder, context, options.run));
  if (few == nullptr) return absl::optional<Plan>();
  ModelDims dims = dims_;
  dims.layers = few->layers.num_kept();
  context.placement = CheckConfig(context.parallel, dims).placement;
  context.model = &few->model;
  absl::StatusOr<Plan> plan =
      RunFromShard(CopyOf(few->graphs, options.evaluation), context, options);
  if (!plan.ok() && !absl::IsCancelled(plan.status())) return absl::optional<Plan>();
  *options.kept = few->layers;
  MGC_RETURN_IF_ERROR(plan.status());
  return absl::make_optional(*std::move(plan));
}

// What is wrong with a model is said of all its layers: an error of the folded one is none.
absl::StatusOr<absl::optional<Plan>> ModelCompiler::CompileFolded(const ModelFolder& folder,
                                                                  PassContext context,
                                                                  const CompileOptions& options) {
  const auto few = Fold(folder, context, options.run);
  if (absl::IsCancelled(few.status())) return few.status();
  if (!few.ok() || *few == nullptr) return absl::optional<Plan>();
  if (context.model == nullptr) context.model = &(*few)->model;
  context.layers = (*few)->layers;
  absl::StatusOr<Plan> plan =
      RunFromShard(CopyOf((*few)->graphs, options.evaluation), context, options);
  if (absl::IsCancelled(plan.status())) return plan.status();
  return plan.ok() ? absl::make_optional(*std::move(plan)) : absl::nullopt;
}

absl::StatusOr<Plan> ModelCompiler::CompileLayers(PassContext context,
                                                  const CompileOptions& options) {
  const OptimizerConfig& optimizer = context.parallel.optimizer;
  const bool folds = options.fold_layers && TreatsLayersAlike(context.strategy, context.placement);
  absl::optional<Plan> plan;
  // A model that has been let go is not needed for plans that bring none. One that names no layers
  // is another one for each configuration; its own folder has nothing to say.
  const bool by_own = folds && dims_.places.named && (again_ == nullptr || !options.brings_model);
  if (by_own) {
    if (options.brings_model) {
      MGC_ASSIGN_OR_RETURN(context.model, Model(optimizer));
    }
    MGC_ASSIGN_OR_RETURN(const ModelFolder* folder, Folder(optimizer));
    MGC_ASSIGN_OR_RETURN(plan, CompileFolded(*folder, context, options));
    if (plan.has_value()) return *std::move(plan);
  }
  MGC_ASSIGN_OR_RETURN(const Graph* model, Model(optimizer));
  Graph cut;
  if (!dims_.places.named) {
    MGC_ASSIGN_OR_RETURN(cut, WithLayers(*model, context));
    model = &cut;
  }
  context.model = model;
  if (folds && !by_own) {
    MGC_ASSIGN_OR_RETURN(plan, CompileFolded(ModelFolder(*model), context, options));
    if (plan.has_value()) return *std::move(plan);
  }
  MGC_ASSIGN_OR_RETURN(StepGraphs graphs,
                       RunBeforeShard({*model, absl::nullopt, notes_}, context, options.run));
  return RunFromShard(std::move(graphs), context, options);
}

absl::Status ModelCompiler::CheckSameModel(const ParallelConfig& config) {
  const std::string asked =
      absl::StrCat(config.optimizer.name, " ", ToString(config.optimizer.groups), " ",
                   NameOf(config.compute_type));
  if (!made_for_.has_value()) made_for_ = asked;
  if (asked == *made_for_) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the model was prepared for `", *made_for_,
                                          "`, and is asked for `", asked, "`"));
}

absl::StatusOr<Plan> ModelCompiler::Compile(const CompileOptions& options) {
  const ParallelConfig& config = options.parallel;
  MGC_RETURN_IF_ERROR(CheckSameModel(config));
  CheckedConfig checked = CheckConfig(config, dims_);
  MGC_RETURN_IF_ERROR(checked.violations.ToStatus());
  const ScheduleSpec schedule{config.schedule, config.pp, checked.vp, checked.micro_batches,
                              config.group_size};
  PassContext context{config,   options.strategy,     std::move(checked.placement),
                      schedule, options.machine,      options.order,
                      nullptr,  options.brings_model, options.flags};
  if (options.kept != nullptr) {
    MGC_ASSIGN_OR_RETURN(absl::optional<Plan> kept, CompileKept(context, options));
    if (kept.has_value()) return *std::move(kept);
  }
  MGC_ASSIGN_OR_RETURN(Plan plan, CompileLayers(std::move(context), options));
  if (options.limit_memory) MGC_RETURN_IF_ERROR(CheckFits(plan));
  return plan;
}

absl::StatusOr<Plan> Compile(const Graph& logical, const ModelDims& dims,
                             const CompileOptions& options) {
  return ModelCompiler(logical, dims).Compile(options);
}

absl::Span<const PassEntry> AllPasses() { return kPasses; }

absl::Span<const PassEntry> CompilePasses() {
  const PassEntry* last =
      std::find_if(std::begin(kPasses), std::end(kPasses),
                   [](const PassEntry& pass) { return pass.to == PassLevel::kPlan; });
  return absl::MakeConstSpan(std::begin(kPasses), last + 1);
}

}  // namespace mgc
