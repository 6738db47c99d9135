// The compiler: a logical graph and a configuration in, a plan out. The order of passes and the
// reasons for it are in compile.cc.

#ifndef MGC_PASSES_COMPILE_H_
#define MGC_PASSES_COMPILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "graph/ir/graph.h"
#include "graph/plan/plan.h"
#include "graph/types/machine.h"
#include "graph/types/model_dims.h"
#include "passes/config/optimizer_config.h"
#include "passes/config/parallel_config.h"
#include "passes/config/strategy_spec.h"
#include "passes/fold/fold_model.h"
#include "passes/fold/layer_map.h"
#include "passes/pass.h"

namespace mgc {

struct CompileOptions {
  ParallelConfig parallel;
  StrategySpec strategy = DefaultStrategy();
  Machine machine;            // whose costs order the plan
  bool limit_memory = false;  // refuse a plan that needs more than machine.memory
  PlanOptions flags;          // written into the plan
  OrderScope order;           // of which all but a search want everything
  bool evaluation = true;     // otherwise the plan has nothing to evaluate with
  bool brings_model = true;   // otherwise the plan has no copy of it, for who wants numbers alone
  RunOptions run;             // of every pass
  // Passes over graphs may see a folded model (passes/fold/fold_model.h): the plan is the same, and
  // is made in less time. What `run` is shown then has fewer layers than the model; where the fold
  // turns out not to hold, the passes run again without it.
  bool fold_layers = true;
  // Where it is given, the plan is of the layers alone that a folded model keeps, on one pipeline
  // rank, and this says which each layer of the model stands for; every layer for itself where the
  // model does not fold. It tells what a layer is like, whatever their number.
  LayerMap* kept = nullptr;
};

// A model as the compiler takes it: parameters that are read in parts are their parts
// (passes/graph/unpack.h) and those that no loss depends on are kept
// (passes/graph/freeze_unused.h), which notes say, and all dims have names
// (passes/graph/dim_classes.h). Who speaks of its dims before it is compiled prepares it first.
Graph PrepareModel(Graph logical, std::vector<std::string>* notes);

// Compiles a model for one configuration after another. What does not depend on them is made once:
// the model as passes take it, and, where all layers are computed again alike, what the passes
// before `shard` make of a folded one; these `options.run` is shown the first time only.
class ModelCompiler {
 public:
  using Build = std::function<absl::StatusOr<Graph>()>;

  // `again` builds the same model anew. Where it is given, plans that bring no model are made of
  // the few layers that stand for all (ModelFolder::KeepFew), and of a model that folds these are
  // all that is kept; what cannot be made of them has the model built again.
  ModelCompiler(Graph logical, const ModelDims& dims, Build again = nullptr);
  ModelCompiler(const ModelCompiler&) = delete;
  ModelCompiler& operator=(const ModelCompiler&) = delete;

  // The compiler of a model that differs from that of `other` in its samples alone, from the few
  // layers that it has kept (passes/graph/resize.h); null where it has kept none, or something
  // binds their size.
  static std::shared_ptr<ModelCompiler> OfOtherSamples(const ModelCompiler& other, int64_t samples,
                                                       Build again);

  // The first one's optimizer and compute type are those of all: Internal for others.
  // Further errors: as below.
  absl::StatusOr<Plan> Compile(const CompileOptions& options);
  // Prepared, with its parameters' optimizers: the model, or the few layers that it has kept.
  absl::StatusOr<const Graph*> ModelOrFew(const OptimizerConfig& optimizer);
  // Of the model, where it has all its layers.
  int64_t num_nodes() const;

 private:
  // With nothing of a model.
  ModelCompiler(const ModelDims& dims, Build again) : dims_(dims), again_(std::move(again)) {}

  // A folded model behind the passes before `shard`.
  struct FewLayers {
    Graph model;  // folded
    StepGraphs graphs;
    LayerMap layers;
  };

  absl::Status CheckSameModel(const ParallelConfig& config);
  absl::StatusOr<const Graph*> Model(const OptimizerConfig& optimizer);
  absl::StatusOr<const ModelFolder*> Folder(const OptimizerConfig& optimizer);
  absl::StatusOr<Plan> CompileLayers(PassContext context, const CompileOptions& options);
  // Nothing where the model does not fold.
  absl::StatusOr<absl::optional<Plan>> CompileFolded(const ModelFolder& folder, PassContext context,
                                                     const CompileOptions& options);
  // Null where the model does not fold.
  absl::StatusOr<std::shared_ptr<const FewLayers>> Fold(const ModelFolder& folder,
                                                        const PassContext& context,
                                                        const RunOptions& options);
  // Nothing where the model does not fold.
  absl::StatusOr<absl::optional<Plan>> CompileKept(PassContext context,
                                                   const CompileOptions& options);

  const ModelDims dims_;
  const Build again_;
  Graph logical_;                         // until it is prepared
  absl::optional<std::string> made_for_;  // what the first configuration asks of the model
  absl::optional<absl::StatusOr<Graph>> model_;
  bool let_go_ = false;  // its folder keeps few layers, and it has to be built again
  std::vector<std::string> notes_;
  absl::optional<ModelFolder> folder_;    // of model_
  std::shared_ptr<const FewLayers> few_;  // where all layers are computed again alike
};

// Errors: InvalidArgument with one line per violated rule for a configuration that cannot be
// (passes/config/check_config.h, shard, memory), or for a graph that cannot be trained; those of
// RunPass.
absl::StatusOr<Plan> Compile(const Graph& logical, const ModelDims& dims,
                             const CompileOptions& options);

// Whether an error of Compile refuses what it was asked for. Any other is a failure of ours.
bool IsRefusal(const absl::Status& status);

// The passes of Compile, in order. A name that occurs twice is one pass on two levels.
absl::Span<const PassEntry> CompilePasses();

// Those, and passes that run by name only.
absl::Span<const PassEntry> AllPasses();

}  // namespace mgc

#endif  // MGC_PASSES_COMPILE_H_
