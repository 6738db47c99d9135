// A model with few of its equal layers, for passes whose work on each of them would be the same.
//
//   embedding, layer 0, ..., layer 95, head   ->   embedding, layers 0, 1 and 2, head
//
// Layers are of a kind that follow each other in one run of equal ones and of which the same is
// computed again; equal are those with the same nodes, types, attributes and origins and parameters
// alike, up to the layer's number in names (graph/types/layer_names.h), that read the same of the
// layer before. What a pass makes of a layer follows from its kind and those of the layers before
// and behind it, so that one layer is kept for all that have these alike. The kept ones follow each
// other as such layers do in the model: what lies between a layer and another that goes on alike is
// left out, if nothing is new there.
//
//   recompute full*30,none*70   ->   full*3,none*3
//   recompute (full,none)*16    ->   (full,none)*3
//
// Models that passes might treat otherwise are not folded:
//   * a value is read in another layer than its own and the next, more than one is in the next, or
//     what an inner layer makes is an output;
//   * an inner layer shares a parameter with another;
//   * nodes or parameters do not lie layer by layer;
//   * a name would not fold to the same text with another number in it.
// What only shows behind the passes is checked there (passes/plan/stage/check_fold.h).

#ifndef MGC_PASSES_FOLD_FOLD_MODEL_H_
#define MGC_PASSES_FOLD_FOLD_MODEL_H_

#include <memory>
#include <vector>

#include "absl/types/optional.h"
#include "graph/ir/graph.h"
#include "passes/config/place_layers.h"
#include "passes/config/recomputation.h"
#include "passes/config/strategy_spec.h"
#include "passes/fold/layer_map.h"
#include "passes/fold/layer_runs.h"

namespace mgc {

struct FoldedModel {
  Graph graph;
  LayerMap layers;
};

// Folds a logical graph that names its layers, for several recomputations.
class ModelFolder {
 public:
  // `model` outlives it, or is there until KeepFew.
  explicit ModelFolder(const Graph& model);
  // One that has kept few layers, of a model that differs from that of `other` as `few` does from
  // the few that it has kept: in sizes alone.
  ModelFolder(const ModelFolder& other, Graph few);

  // Nothing where the graph may not be folded, or would not be smaller.
  absl::optional<FoldedModel> Fold(const Recomputation& recomputation = {}) const;

  // From now on the model is not needed: a layer is a copy of an equal one among the few that stand
  // for all. Nodes then have the source locations of those. False where the model does not fold.
  bool KeepFew();
  // They, where they are all that is left; else null.
  const FoldedModel* few() const { return few_.get(); }

 private:
  void CopyFrom(FoldedModel few);

  std::vector<LayerRun> runs_;              // of the model; none where it may not be folded
  std::unique_ptr<const FoldedModel> few_;  // where they are all that is left
  const Graph* source_;                     // the model, or they
  std::unique_ptr<LayerRuns> layers_;       // of the source
  std::vector<LayerRun> source_runs_;       // likewise
};

// Whether a configuration treats equal layers alike: no scope of the strategy names a number, and
// no stage is empty, so that only neighbouring layers are neighbours in a pipeline.
bool TreatsLayersAlike(const StrategySpec& strategy, const LayerPlacement& placement);

}  // namespace mgc

#endif  // MGC_PASSES_FOLD_FOLD_MODEL_H_
