#include "passes/pass_adapters.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/diagnostic.h"
#include "graph/base/status.h"
#include "graph/ir/results.h"
#include "graph/ir/vocabulary.h"
#include "passes/graph/differentiate.h"
#include "passes/graph/narrow_sums.h"
#include "passes/graph/recompute.h"
#include "passes/graph/scale_loss.h"
#include "passes/graph/shard/idle_requests.h"
#include "passes/graph/shard/shard.h"
#include "passes/graph/shard/strategy.h"
#include "passes/graph/split_products.h"
#include "passes/plan/allocate.h"
#include "passes/plan/order.h"
#include "passes/plan/schedule.h"
#include "passes/plan/stage/stage.h"

namespace mgc {
namespace {

// By layer of the graphs, of which each may stand for several of the model.
Recomputation RecomputationOfKept(const PassContext& context) {
  const Recomputation& all = context.parallel.recompute;
  if (!context.layers.has_value() || all.by_layer().empty()) return all;
  std::vector<RecomputeKind> kept;
  kept.reserve(static_cast<size_t>(context.layers->num_kept()));
  for (int k = 0; k < context.layers->num_kept(); ++k) {
    kept.push_back(all.Of(context.layers->FirstOf(k)));
  }
  return Recomputation(std::move(kept));
}

// What a plan says of its making.
void FillHeader(const PassContext& context, Plan* plan) {
  const Graph& model = *context.model;
  plan->name = model.name();
  plan->options = context.flags;
  plan->machine = context.machine;
  if (context.brings_model) plan->model = model;
  plan->micro_batch_size = context.parallel.micro_batch_size;
  plan->global_batch_size = context.parallel.global_batch_size;
  plan->num_micro_batches = context.schedule.micro_batches;
  plan->seq_length = context.parallel.seq_length;
  plan->vocab = VocabularyOf(model);
  plan->gradient_sums = context.parallel.gradient_sums;
}

// A later micro-batch would write over the results of the one before.
absl::Status CheckAsked(const Graph& model, const PassContext& context) {
  const int64_t micro_batches = context.schedule.micro_batches;
  if (micro_batches == 1 || ResultsOf(model).empty()) return absl::OkStatus();
  const Diagnostic several = {
      "differentiate_c9",
      absl::StrCat("a step that leaves results has one micro-batch, not ", micro_batches),
      absl::StrCat("micro-batch size ", context.parallel.micro_batch_size * micro_batches)};
  return absl::InvalidArgumentError(ToString(several));
}

int64_t BackwardNodes(const Graph& graph) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                       [](const Node& node) { return node.phase == Phase::kBackward; });
}

}  // namespace

absl::StatusOr<PassForm> RunDifferentiate(PassForm form, const PassContext& context) {
  StepGraphs graphs = std::get<StepGraphs>(std::move(form));
  if (IsAsked(graphs.train)) {
    MGC_RETURN_IF_ERROR(CheckAsked(graphs.train, context));
    MGC_ASSIGN_OR_RETURN(graphs.train, Evaluation(graphs.train));
    return graphs;
  }
  MGC_ASSIGN_OR_RETURN(Graph train, Differentiate(graphs.train));
  MGC_ASSIGN_OR_RETURN(graphs.eval, Evaluation(graphs.train));
  graphs.train = std::move(train);
  return graphs;
}

absl::StatusOr<PassForm> RunScaleLoss(PassForm form, const PassContext& context) {
  StepGraphs graphs = std::get<StepGraphs>(std::move(form));
  if (context.parallel.compute_type != DType::kF16 || IsAsked(graphs.train)) return graphs;
  MGC_ASSIGN_OR_RETURN(graphs.train, ScaleLoss(graphs.train));
  return graphs;
}

absl::StatusOr<PassForm> RunShard(PassForm form, const PassContext& context) {
  StepGraphs graphs = std::get<StepGraphs>(std::move(form));
  MGC_ASSIGN_OR_RETURN(const MeshStrategy bound,
                       BindStrategy(context.strategy, context.parallel, SizesOf(graphs.train)));
  MGC_ASSIGN_OR_RETURN(Sharded train, Shard(graphs.train, bound.mesh, bound.strategy));
  if (!context.parallel.allow_replicated) {
    MGC_ASSIGN_OR_RETURN(const Diagnostics idle,
                         IdleRequests(train.graph, context.parallel, context.strategy));
    MGC_RETURN_IF_ERROR(idle.ToStatus());
  }
  graphs.train = std::move(train.graph);
  graphs.notes.insert(graphs.notes.end(), train.notes.begin(), train.notes.end());
  if (!graphs.eval.has_value()) return graphs;
  MGC_ASSIGN_OR_RETURN(Sharded eval, Shard(*graphs.eval, bound.mesh, bound.strategy));
  graphs.eval = std::move(eval.graph);
  for (std::string& note : eval.notes) {
    const bool known =
        std::find(graphs.notes.begin(), graphs.notes.end(), note) != graphs.notes.end();
    if (!known) graphs.notes.push_back(absl::StrCat("evaluation: ", note));
  }
  return graphs;
}

absl::StatusOr<PassForm> RunNarrowSums(PassForm form, const PassContext& context) {
  const DType type = context.parallel.gradient_sums;
  StepGraphs graphs = std::get<StepGraphs>(std::move(form));
  Graph train = NarrowSums(graphs.train, type);
  const bool idle = type != DType::kF32 && !context.parallel.allow_replicated &&
                    train.nodes().size() == graphs.train.nodes().size();
  if (idle) {
    const Diagnostic nothing = {"narrow_sums_c1",
                                absl::StrCat("gradients cannot be summed in ", NameOf(type),
                                             ": none is summed over ranks that hold other data"),
                                "f32, more ranks than tp * pp, or --allow-replicated"};
    return absl::InvalidArgumentError(ToString(nothing));
  }
  graphs.train = std::move(train);
  return graphs;
}

absl::StatusOr<PassForm> RunRecompute(PassForm form, const PassContext& context) {
  const Recomputation kind = RecomputationOfKept(context);
  StepGraphs graphs = std::get<StepGraphs>(std::move(form));
  Graph train = Recompute(graphs.train, kind);
  const bool idle = kind.Any() && BackwardNodes(train) == BackwardNodes(graphs.train) &&
                    !context.parallel.allow_replicated;
  if (idle) {
    const Diagnostic nothing = {
        "recompute_c1", absl::StrCat("recompute ", ToString(kind), " computes nothing again"),
        absl::StrCat("recompute none", kind.Has(RecomputeKind::kFull) ? "" : ", full",
                     ", or --allow-replicated")};
    return absl::InvalidArgumentError(ToString(nothing));
  }
  graphs.train = std::move(train);
  if (graphs.eval.has_value()) graphs.eval = Recompute(*graphs.eval, kind);
  return graphs;
}

absl::StatusOr<PassForm> RunSplitProducts(PassForm form, const PassContext& context) {
  const int64_t pieces = context.parallel.split_products;
  StepGraphs graphs = std::get<StepGraphs>(std::move(form));
  Graph train = SplitProducts(graphs.train, pieces);
  const bool idle = pieces > 1 && train.nodes().size() == graphs.train.nodes().size() &&
                    !context.parallel.allow_replicated;
  if (idle) {
    const Diagnostic nothing = {
        "split_products_c1",
        absl::StrCat("no product can be cut into ", pieces,
                     " pieces: none of a layer's forward stands beside a collective, with rows "
                     "that can be divided"),
        "split products 1, tp 2, or --allow-replicated"};
    return absl::InvalidArgumentError(ToString(nothing));
  }
  graphs.train = std::move(train);
  if (graphs.eval.has_value()) graphs.eval = SplitProducts(*graphs.eval, pieces);
  return graphs;
}

absl::StatusOr<PassForm> RunStage(PassForm form, const PassContext& context) {
  StepGraphs graphs = std::get<StepGraphs>(std::move(form));
  const LayerMap layers = context.layers.value_or(LayerMap(graphs.train.num_layers()));
  MGC_ASSIGN_OR_RETURN(StagedPlan staged, Stage(graphs.train, graphs.eval.value_or(Graph()),
                                                context.placement, layers));
  staged.notes = std::move(graphs.notes);
  return staged;
}

absl::StatusOr<PassForm> RunSchedule(PassForm form, const PassContext& context) {
  MGC_ASSIGN_OR_RETURN(PipelineSchedule schedule, BuildSchedule(context.schedule));
  return ScheduledPlan{std::get<StagedPlan>(std::move(form)), std::move(schedule)};
}

absl::StatusOr<PassForm> RunOrder(PassForm form, const PassContext& context) {
  absl::optional<ShorterSchedule> shorter;
  if (!context.order.all_rounds) shorter = LeaveOutRounds(context.schedule);
  MGC_ASSIGN_OR_RETURN(OrderedPlan ordered,
                       Order(std::get<ScheduledPlan>(std::move(form)), context.machine, nullptr,
                             context.order, shorter));
  return ordered;
}

absl::StatusOr<PassForm> RunAllocate(PassForm form, const PassContext& context) {
  MGC_ASSIGN_OR_RETURN(Plan plan,
                       Allocate(std::get<OrderedPlan>(std::move(form)), context.machine.host));
  FillHeader(context, &plan);
  return plan;
}

}  // namespace mgc
