#include "passes/fold/fold_model.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "graph/types/layer_names.h"
#include "passes/fold/layer_runs.h"

namespace mgc {
namespace {

// So many layers of a kind are kept before one of them stands for another: there is another to
// compare it with (passes/plan/stage/check_fold.h).
constexpr size_t kBesideEachOther = 2;

// Beyond the ends of the inner layers.
constexpr int kOutside = -1;

// Kinds of layers, by number: equal layers of which the same is computed again are of one.
std::vector<int> KindsOf(const std::vector<LayerRun>& runs, const Recomputation& recomputation) {
  std::map<std::pair<size_t, RecomputeKind>, int> numbers;
  std::vector<int> kinds;
  for (size_t r = 0; r < runs.size(); ++r) {
    for (int layer = runs[r].first; layer <= runs[r].last; ++layer) {
      const std::pair<size_t, RecomputeKind> kind = {r, recomputation.Of(layer)};
      kinds.push_back(numbers.try_emplace(kind, static_cast<int>(numbers.size())).first->second);
    }
  }
  return kinds;
}

// Says what stands for each layer. What is kept is a way through the model that leaves loops out:
// behind each layer of it follows one of the kind that follows it in the model.
class MapMaker {
 public:
  MapMaker(const std::vector<LayerRun>& runs, const Recomputation& recomputation)
      : runs_(runs), kinds_(KindsOf(runs, recomputation)) {}

  LayerMap Run() && {
    const int layers = static_cast<int>(kinds_.size());
    for (int layer = 0; layer < layers; ++layer) Take(layer);
    std::vector<int> kept(kinds_.size(), kNoLayer);
    std::vector<int> kinds;
    for (size_t k = 0; k < way_.size(); ++k) {
      kept[static_cast<size_t>(way_[k])] = static_cast<int>(k);
      kinds.push_back(KindOf(way_[k]));
    }
    bool one_place = true;
    for (const LayerRun& run : runs_) {
      for (int layer = run.first; layer <= run.last; ++layer) {
        int& stands = kept[static_cast<size_t>(layer)];
        if (stands != kNoLayer) continue;
        stands = kept[static_cast<size_t>(met_.at(PlaceOf(layer)))];
        one_place = one_place && run.one_place;
      }
    }
    return LayerMap(std::move(kept), std::move(kinds), one_place);
  }

 private:
  // A layer's kind between those of its neighbours.
  using Place = std::tuple<int, int, int>;

  int KindOf(int layer) const {
    const bool is_inner = layer >= 0 && layer < static_cast<int>(kinds_.size());
    return is_inner ? kinds_[static_cast<size_t>(layer)] : kOutside;
  }
  Place PlaceOf(int layer) const { return {KindOf(layer - 1), KindOf(layer), KindOf(layer + 1)}; }

  void Take(int layer) {
    const bool is_new = met_.try_emplace(PlaceOf(layer), layer).second;
    size_t& of_kind = num_met_[KindOf(layer)];
    if (is_new || of_kind < kBesideEachOther) {
      ++of_kind;
      way_.push_back(layer);
      needed_ = way_.size();
      return;
    }
    // Where the way has met the same two kinds since the last layer that it needs, it goes on from
    // there.
    const auto same = std::find_if(
        way_.begin() + static_cast<int64_t>(needed_) - 1, way_.end(), [&](int earlier) {
          return KindOf(earlier) == KindOf(layer) && KindOf(earlier + 1) == KindOf(layer + 1);
        });
    if (same == way_.end()) {
      way_.push_back(layer);
    } else {
      way_.erase(same + 1, way_.end());
    }
  }

  const std::vector<LayerRun>& runs_;
  const std::vector<int> kinds_;   // by layer
  std::map<Place, int> met_;       // the first layer there; the way keeps it
  std::map<int, size_t> num_met_;  // layers needed, by kind
  std::vector<int> way_;           // the layers kept
  size_t needed_ = 0;              // of the way, up to here: it stays
};

// Copies what is kept of a graph, with the numbers that its layers get there. Of a run of equal
// layers the copies follow each other, whichever of the graph's layers each is a copy of.
class Folder {
 public:
  // `runs` of `layers`, which are those of `source`. `copied`, by layer of the folded graph: the
  // one of `source` that it is a copy of, ascending.
  Folder(const Graph& source, const LayerRuns& layers, const std::vector<LayerRun>& runs,
         std::vector<int> copied)
      : source_(source),
        layers_(layers),
        runs_(runs),
        copied_(std::move(copied)),
        builder_(source.name(), source.level()),
        made_(source.values().size(), kNone),
        of_layers_(copied_.size()),
        blocks_(static_cast<size_t>(source.num_layers())) {}

  absl::optional<Graph> Run() {
    builder_.set_mesh(source_.mesh());
    builder_.set_num_layers(num_copies());
    for (const std::string& file : source_.files()) builder_.AddFile(file);
    FindBlocks();
    for (const Block& block : in_order_) {
      if (!IsInner(block.layer)) {
        CopyBlock(block, block.layer, block.layer < 0 ? block.layer : num_copies());
      } else {
        CopyRun(block);
      }
    }
    for (GraphOutput output : source_.outputs()) {
      output.value = Result(output.value);
      builder_.AddOutput(std::move(output));
    }
    if (!is_faithful_) return absl::nullopt;
    return std::move(builder_).Finish();
  }

 private:
  // Values that follow each other and are of one layer.
  struct Block {
    int layer = 0;
    ValueId first = 0;
    ValueId last = 0;
    size_t number = 0;  // among those of an inner layer
  };

  int num_copies() const { return static_cast<int>(copied_.size()); }
  bool IsInner(int layer) const { return layer >= 0 && layer < source_.num_layers(); }

  void FindBlocks() {
    for (ValueId id = 0; id < static_cast<ValueId>(source_.values().size()); ++id) {
      const int layer = layers_.LayerOf(id);
      if (in_order_.empty() || in_order_.back().layer != layer) {
        const size_t number = IsInner(layer) ? blocks_[static_cast<size_t>(layer)].size() : 0;
        in_order_.push_back({layer, id, id, number});
        if (IsInner(layer)) blocks_[static_cast<size_t>(layer)].push_back(in_order_.back());
      } else {
        in_order_.back().last = id;
        if (IsInner(layer)) blocks_[static_cast<size_t>(layer)].back().last = id;
      }
    }
  }

  // Where the first layer of a run has a block, all copies of the run's layers get theirs.
  void CopyRun(const Block& block) {
    const auto run = std::find_if(runs_.begin(), runs_.end(), [&](const LayerRun& some) {
      return some.first <= block.layer && block.layer <= some.last;
    });
    if (block.layer != run->first) return;
    for (int copy = 0; copy < num_copies(); ++copy) {
      const int layer = copied_[static_cast<size_t>(copy)];
      if (layer < run->first || layer > run->last) continue;
      const std::vector<Block>& own = blocks_[static_cast<size_t>(layer)];
      is_faithful_ = is_faithful_ && own.size() == blocks_[static_cast<size_t>(run->first)].size();
      if (block.number < own.size()) CopyBlock(own[block.number], layer, copy);
    }
  }

  void CopyBlock(const Block& block, int layer, int copy) {
    for (ValueId id = block.first; id <= block.last; ++id) {
      if (Made(id, copy) != kNone) continue;
      const NodeId producer = source_.value(id).producer;
      if (producer == kNone) {
        AddInput(*source_.FindInput(id), layer, copy);
      } else {
        AddNode(source_.node(producer), layer, copy);
      }
    }
  }

  // The copy of a value for a layer of the folded graph.
  ValueId Made(ValueId id, int copy) const {
    if (!IsInner(layers_.LayerOf(id))) return made_[static_cast<size_t>(id)];
    const auto& made = of_layers_[static_cast<size_t>(copy)];
    const auto found = made.find(id);
    return found == made.end() ? kNone : found->second;
  }

  // What a layer reads; of a layer before it what its copy hands on.
  ValueId Read(ValueId id, int layer, int copy) const {
    const int home = layers_.LayerOf(id);
    if (!IsInner(home) || home == layer) return Made(id, copy);
    const int before = copied_[static_cast<size_t>(copy) - 1];
    return Made(layers_.HandedBy(before), copy - 1);
  }

  // The copy of what the graph returns: of an inner layer there is one.
  ValueId Result(ValueId id) const {
    const auto copy = std::find(copied_.begin(), copied_.end(), layers_.LayerOf(id));
    return Made(id, static_cast<int>(copy - copied_.begin()));
  }

  void AddInput(const GraphInput& input, int layer, int copy) {
    const Value& value = source_.value(input.value);
    Attrs attrs = Renamed(input.attrs, layer, copy);
    const std::string name = Renamed(value.name, layer, copy);
    const ValueId id =
        builder_.AddInput(name, value.type, input.kind, std::move(attrs), value.sharding);
    Map(input.value, copy, id, name);
  }

  void AddNode(const Node& node, int layer, int copy) {
    Node made = node;
    made.layer = copy;
    made.attrs = Renamed(node.attrs, layer, copy);
    made.origin = Renamed(node.origin, layer, copy);
    for (ValueId& id : made.inputs) id = Read(id, layer, copy);
    std::vector<Value> results;
    std::vector<std::string> names;
    for (const ValueId id : node.outputs) {
      results.push_back(source_.value(id));
      results.back().name = Renamed(results.back().name, layer, copy);
      names.push_back(results.back().name);
    }
    const NodeId added = builder_.AppendRaw(std::move(made), std::move(results));
    for (size_t r = 0; r < node.outputs.size(); ++r) {
      Map(node.outputs[r], copy, builder_.graph().node(added).outputs[r], names[r]);
    }
  }

  void Map(ValueId old, int copy, ValueId now, const std::string& name) {
    if (IsInner(layers_.LayerOf(old))) {
      of_layers_[static_cast<size_t>(copy)][old] = now;
    } else {
      made_[static_cast<size_t>(old)] = now;
    }
    is_faithful_ = is_faithful_ && builder_.graph().value(now).name == name;
  }

  std::string Renamed(const std::string& text, int layer, int copy) {
    if (copy == layer || !IsInner(layer)) return text;
    const std::string pattern = FoldName(text, layer, source_.num_layers());
    std::string renamed = NameForLayer(pattern, copy);
    is_faithful_ = is_faithful_ && FoldName(renamed, copy, num_copies()) == pattern;
    return renamed;
  }

  Attrs Renamed(const Attrs& attrs, int layer, int copy) {
    Attrs renamed = attrs;
    for (const Attrs::Entry& entry : attrs) {
      const std::string* text = std::get_if<std::string>(&entry.second);
      if (text != nullptr) renamed.Set(entry.first, Renamed(*text, layer, copy));
    }
    return renamed;
  }

  const Graph& source_;
  const LayerRuns& layers_;
  const std::vector<LayerRun>& runs_;
  const std::vector<int> copied_;
  GraphBuilder builder_;
  std::vector<ValueId> made_;  // by the source's values, of all but inner layers
  std::vector<absl::flat_hash_map<ValueId, ValueId>> of_layers_;  // likewise, by copied layer
  std::vector<Block> in_order_;
  std::vector<std::vector<Block>> blocks_;  // by inner layer
  bool is_faithful_ = true;                 // names fold as they did
};

}  // namespace

ModelFolder::ModelFolder(const Graph& model)
    : source_(&model), layers_(std::make_unique<LayerRuns>(model)) {
  if (layers_->IsLayered()) runs_ = layers_->Runs();
  source_runs_ = runs_;
}

absl::optional<FoldedModel> ModelFolder::Fold(const Recomputation& recomputation) const {
  if (runs_.empty()) return absl::nullopt;
  LayerMap map = MapMaker(runs_, recomputation).Run();
  if (!map.folds()) return absl::nullopt;
  std::vector<int> copied;
  for (int kept = 0; kept < map.num_kept(); ++kept) {
    const int layer = map.FirstOf(kept);
    copied.push_back(few_ == nullptr ? layer : few_->layers.KeptFor(layer));
  }
  absl::optional<Graph> folded = Folder(*source_, *layers_, source_runs_, std::move(copied)).Run();
  if (!folded.has_value()) return absl::nullopt;
  return FoldedModel{*std::move(folded), std::move(map)};
}

ModelFolder::ModelFolder(const ModelFolder& other, Graph few) : runs_(other.runs_) {
  CopyFrom({std::move(few), other.few_->layers});
}

bool ModelFolder::KeepFew() {
  if (few_ != nullptr) return true;
  absl::optional<FoldedModel> few = Fold();
  if (!few.has_value()) return false;
  CopyFrom(*std::move(few));
  return true;
}

void ModelFolder::CopyFrom(FoldedModel few) {
  few_ = std::make_unique<const FoldedModel>(std::move(few));
  source_ = &few_->graph;
  layers_ = std::make_unique<LayerRuns>(*source_);
  source_runs_ = layers_->Runs();
  for (LayerRun& run : runs_) run.one_place = true;
}

bool TreatsLayersAlike(const StrategySpec& strategy, const LayerPlacement& placement) {
  const auto names_number = [](const auto& row) {
    return std::any_of(row.scope.begin(), row.scope.end(), absl::ascii_isdigit);
  };
  const auto is_empty = [](const StageContent& stage) {
    return stage.num_layers == 0 && !stage.has_embedding && !stage.has_head;
  };
  return std::none_of(strategy.rows.begin(), strategy.rows.end(), names_number) &&
         std::none_of(strategy.stores.begin(), strategy.stores.end(), names_number) &&
         std::none_of(placement.stages.begin(), placement.stages.end(), is_empty);
}

}  // namespace mgc
