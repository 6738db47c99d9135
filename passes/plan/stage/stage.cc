#include "passes/plan/stage/stage.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "graph/base/status.h"
#include "graph/ir/model_layers.h"
#include "graph/ir/optimizers.h"
#include "graph/ir/results.h"
#include "graph/ir/step_gradients.h"
#include "graph/ir/step_names.h"
#include "passes/plan/stage/check_fold.h"
#include "passes/plan/stage/class_stager.h"
#include "passes/plan/stage/fold_segments.h"
#include "passes/plan/stage/parts.h"
#include "passes/plan/stage/shared_params.h"
#include "passes/plan/stage/shared_sums.h"
#include "passes/plan/stage/value_places.h"
#include "passes/plan/stage/whole_vectors.h"

namespace mgc {
namespace {

// But for their names. Layers without parameters may still keep gradients, of what others own.
bool AreEqual(const ParamBlock& a, const ParamBlock& b) {
  const auto bytes = [](const ParamBlock& block) {
    return std::tie(block.param_bytes, block.grad_bytes, block.state_bytes);
  };
  if (bytes(a) != bytes(b) || a.kept != b.kept) return false;
  const auto fields = [](const ParamEntry& e) {
    return std::tie(e.name, e.type, e.sharding, e.state_sharding, e.init, e.param_offset,
                    e.gradient_base, e.gradient_offset);
  };
  return std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(),
                    [&](const ParamEntry& x, const ParamEntry& y) {
                      return fields(x) == fields(y) && x.states == y.states;
                    });
}

class Stager {
 public:
  Stager(const Graph& train, const Graph& eval, const LayerPlacement& placement,
         const LayerMap& layers)
      : train_parts_(train),
        eval_parts_(eval),
        train_crossings_(train_parts_, placement, layers, nullptr),
        eval_crossings_(eval_parts_, placement, layers, &train_crossings_),
        train_bundles_(train_parts_, train_crossings_, layers, NumStages(placement)),
        eval_bundles_(eval_parts_, eval_crossings_, layers, NumStages(placement)),
        shared_(train_parts_, train_crossings_, placement),
        train_places_(train_parts_, train_crossings_, train_bundles_, layers, shared_),
        eval_places_(eval_parts_, eval_crossings_, eval_bundles_, layers, train_places_),
        gradients_(GradientsOf(train)),
        placement_(placement),
        layers_(layers) {}

  absl::StatusOr<StagedPlan> Run() {
    MGC_RETURN_IF_ERROR(train_crossings_.Check());
    MGC_RETURN_IF_ERROR(eval_crossings_.Check());
    if (layers_.folds()) {
      MGC_RETURN_IF_ERROR(CheckFold(train_parts_, train_crossings_, layers_));
      MGC_RETURN_IF_ERROR(CheckFold(eval_parts_, eval_crossings_, layers_));
    }
    plan_.mesh = train_parts_.graph().mesh();
    plan_.stages = placement_.places;
    const PartNodes train_nodes = NodesByPart(train_parts_);
    const PartNodes eval_nodes = NodesByPart(eval_parts_);
    SegmentCache train_cache;
    SegmentCache eval_cache;
    for (int64_t c = 0; c < placement_.pp; ++c) {
      StagedClass made;
      made.coordinate = static_cast<int>(c);
      ClassStager train({train_places_, train_nodes, placement_, layers_}, made.coordinate,
                        &train_cache, &folder_);
      made.train = StepOf(train_places_, &train);
      ClassStager eval({eval_places_, eval_nodes, placement_, layers_}, made.coordinate,
                       &eval_cache, &folder_);
      made.eval = StepOf(eval_places_, &eval);
      if (!train.has_places() || !eval.has_places()) {
        return absl::FailedPreconditionError("a folded layer has other source locations");
      }
      AddBlocks(train.held(), &made);
      plan_.classes.push_back(std::move(made));
    }
    MGC_RETURN_IF_ERROR(CheckNeighbours(train_cache, layers_));
    MGC_RETURN_IF_ERROR(CheckNeighbours(eval_cache, layers_));
    plan_.segments = std::move(folder_).Take();
    return std::move(plan_);
  }

 private:
  static int NumStages(const LayerPlacement& placement) {
    return static_cast<int>(placement.stages.size());
  }

  static StagedStep StepOf(const ValuePlaces& places, ClassStager* stager) {
    StagedStep step;
    step.chunks = stager->Chunks();
    step.update = stager->Update();
    step.copy_bytes = stager->copy_bytes();
    step.owed_bytes = stager->owed_bytes();
    step.global_bytes = places.global_bytes();
    step.zeroed_global_bytes = places.zeroed_global_bytes();
    NameGlobals(places, &step);
    const Graph& graph = places.parts().graph();
    for (const GraphOutput* result : ResultsOf(graph)) {
      const Value& value = graph.value(result->value);
      if (stager->held().count(graph.node(value.producer).layer) == 0) continue;
      step.results.push_back(
          {result->name, value.type, *value.sharding, places.GlobalOffset(result->value)});
    }
    return step;
  }

  void AddBlocks(const std::set<int>& held, StagedClass* made) {
    for (int layer : held) {
      made->blocks.push_back({BlockOf(layers_.KeptFor(layer), ""), layer, true});
    }
    for (const auto& [block, classes] : shared_.blocks()) {
      const auto& [kept, name] = block;
      if (std::count(classes.begin(), classes.end(), made->coordinate) == 0) continue;
      const int layer = layers_.FirstOf(kept);
      made->blocks.push_back({BlockOf(kept, name), layer, held.count(layer) > 0});
    }
  }

  int BlockOf(int layer, const std::string& shared) {
    const auto [known, is_new] = block_of_.try_emplace({layer, shared}, 0);
    if (is_new) known->second = FindBlock(layer, shared);
    return known->second;
  }

  // The block of a layer's own parameters (`shared` is empty), or of some it shares; layers with
  // the same share it. Of several kinds of layers the second is called `layer.2`.
  int FindBlock(int layer, const std::string& shared) {
    const Graph& graph = train_parts_.graph();
    const std::string kind = shared.empty() ? LayerKind(layer, graph.num_layers()) : shared;
    ParamBlock block;
    const ValuePlaces::BlockBytes& bytes = train_places_.block(layer, shared);
    block.param_bytes = bytes.params;
    block.grad_bytes = bytes.grads;
    block.state_bytes = bytes.states;
    for (ValueId param : train_places_.ParamsOf(layer, shared)) {
      block.entries.push_back(EntryOf(param, layer));
    }
    if (shared.empty()) block.kept = KeptOf(layer);
    block.name = kind;
    for (int number = 2;; ++number) {
      const auto found =
          std::find_if(plan_.blocks.begin(), plan_.blocks.end(),
                       [&](const ParamBlock& other) { return other.name == block.name; });
      if (found == plan_.blocks.end()) break;
      if (AreEqual(*found, block)) return static_cast<int>(found - plan_.blocks.begin());
      block.name = absl::StrCat(kind, ".", number);
    }
    plan_.blocks.push_back(std::move(block));
    return static_cast<int>(plan_.blocks.size()) - 1;
  }

  // What steps leave for the next in a layer's block.
  std::vector<NamedTensor> KeptOf(int layer) const {
    const Graph& graph = train_parts_.graph();
    std::vector<NamedTensor> kept;
    for (const GraphInput& input : graph.inputs()) {
      if (!IsKeptState(graph, input) || train_parts_.HomeLayer(input.value) != layer) continue;
      const Value& value = graph.value(input.value);
      kept.push_back({FoldName(value.name, layer, graph.num_layers()), value.type, *value.sharding,
                      train_places_.PlaceOf(input.value, layer).offset});
    }
    return kept;
  }

  ParamEntry EntryOf(ValueId param, int layer) const {
    const Graph& graph = train_parts_.graph();
    const Value& value = graph.value(param);
    ParamEntry entry;
    entry.name = FoldName(value.name, layer, graph.num_layers());
    entry.type = value.type;
    entry.sharding = *value.sharding;
    entry.state_sharding = *value.sharding;
    entry.init = graph.FindInput(param)->attrs;
    entry.param_offset = train_places_.PlaceOf(param, layer).offset;
    const auto gradient = gradients_.find(param);
    if (gradient == gradients_.end() || !IsTrained(entry.init)) return entry;
    for (const std::string& name : StatesOf(OptimizerOf(entry.init))) {
      const ValueId state = graph.FindValue(StateName(value.name, name));
      if (state == kNone) return entry;
      entry.state_sharding = graph.sharding(state);
      entry.states.push_back({name, train_places_.PlaceOf(state, layer).offset});
    }
    const ValuePlace place = train_places_.PlaceOf(gradient->second, layer);
    entry.gradient_base = place.formal;
    entry.gradient_offset = place.offset;
    return entry;
  }

  static void NameGlobals(const ValuePlaces& places, StagedStep* step) {
    const Graph& graph = places.parts().graph();
    for (const GraphInput& input : graph.inputs()) {
      if (!places.IsNumber(input)) continue;
      (input.kind == InputKind::kState ? step->carried : step->scalars)
          .push_back({graph.value(input.value).name, places.GlobalOffset(input.value)});
    }
    for (const GraphOutput& output : graph.outputs()) {
      if (output.kind != OutputKind::kReport || graph.type(output.value).ndim() > 0) continue;
      step->reports.push_back(
          {output.name, places.GlobalOffset(places.parts().RootOf(output.value))});
    }
  }

  const Parts train_parts_;
  const Parts eval_parts_;
  const Crossings train_crossings_;
  const Crossings eval_crossings_;
  const Bundles train_bundles_;
  const Bundles eval_bundles_;
  const SharedParams shared_;
  const ValuePlaces train_places_;
  const ValuePlaces eval_places_;
  const absl::flat_hash_map<ValueId, ValueId> gradients_;  // by parameter
  const LayerPlacement& placement_;
  const LayerMap& layers_;
  SegmentFolder folder_;
  std::map<std::pair<int, std::string>, int>
      block_of_;  // by layer of the graph, and what it shares
  StagedPlan plan_;
};

}  // namespace

absl::StatusOr<StagedPlan> Stage(const Graph& train, const Graph& eval,
                                 const LayerPlacement& placement, const LayerMap& layers) {
  const absl::optional<Graph> summed = WithSharedSums(train, placement, layers);
  const Graph& step = summed.has_value() ? *summed : train;
  if (!layers.folds()) return Stager(step, eval, placement, layers).Run();
  MGC_ASSIGN_OR_RETURN(const Graph whole, WithWholeVectors(step, layers));
  return Stager(whole, eval, placement, layers).Run();
}

}  // namespace mgc
