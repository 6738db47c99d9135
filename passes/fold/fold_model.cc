#include "passes/fold/fold_model.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

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

// Copies what is kept, with the numbers that its layers get.
class Folder {
 public:
  Folder(const Graph& model, const LayerRuns& runs, const LayerMap& layers)
      : model_(model),
        runs_(runs),
        layers_(layers),
        builder_(model.name(), model.level()),
        made_(model.values().size(), kNone) {}

  absl::optional<Graph> Run() {
    builder_.set_mesh(model_.mesh());
    builder_.set_num_layers(layers_.num_kept());
    for (const std::string& file : model_.files()) builder_.AddFile(file);
    for (size_t v = 0; v < model_.values().size(); ++v) {
      const ValueId id = static_cast<ValueId>(v);
      if (!IsKept(runs_.LayerOf(id)) || made_[v] != kNone) continue;
      const NodeId producer = model_.value(id).producer;
      if (producer == kNone) {
        AddInput(*model_.FindInput(id));
      } else {
        AddNode(model_.node(producer));
      }
    }
    for (GraphOutput output : model_.outputs()) {
      output.value = Made(output.value);
      builder_.AddOutput(std::move(output));
    }
    if (!is_faithful_) return absl::nullopt;
    return std::move(builder_).Finish();
  }

 private:
  bool IsKept(int layer) const { return layers_.FirstOf(layers_.KeptFor(layer)) == layer; }

  ValueId Made(ValueId id) const { return made_[static_cast<size_t>(id)]; }

  // What a layer reads; of a layer before it that is not kept, what the kept one before it hands
  // on.
  ValueId Read(ValueId id, int layer) const {
    if (Made(id) != kNone) return Made(id);
    return Made(runs_.HandedBy(layers_.FirstOf(layers_.KeptFor(layer) - 1)));
  }

  void AddInput(const GraphInput& input) {
    const Value& value = model_.value(input.value);
    const int layer = runs_.LayerOf(input.value);
    Attrs attrs = Renamed(input.attrs, layer);
    const std::string name = Renamed(value.name, layer);
    const ValueId id =
        builder_.AddInput(name, value.type, input.kind, std::move(attrs), value.sharding);
    Map(input.value, id, name);
  }

  void AddNode(const Node& node) {
    Node copy = node;
    copy.layer = layers_.KeptFor(node.layer);
    copy.attrs = Renamed(node.attrs, node.layer);
    copy.origin = Renamed(node.origin, node.layer);
    for (ValueId& id : copy.inputs) id = Read(id, node.layer);
    std::vector<Value> results;
    std::vector<std::string> names;
    for (const ValueId id : node.outputs) {
      results.push_back(model_.value(id));
      results.back().name = Renamed(results.back().name, node.layer);
      names.push_back(results.back().name);
    }
    const NodeId added = builder_.AppendRaw(std::move(copy), std::move(results));
    for (size_t r = 0; r < node.outputs.size(); ++r) {
      Map(node.outputs[r], builder_.graph().node(added).outputs[r], names[r]);
    }
  }

  void Map(ValueId old, ValueId now, const std::string& name) {
    made_[static_cast<size_t>(old)] = now;
    is_faithful_ = is_faithful_ && builder_.graph().value(now).name == name;
  }

  std::string Renamed(const std::string& text, int layer) {
    const int kept = layers_.KeptFor(layer);
    const bool is_inner = layer >= 0 && layer < model_.num_layers();
    if (kept == layer || !is_inner) return text;
    const std::string pattern = FoldName(text, layer, model_.num_layers());
    std::string renamed = NameForLayer(pattern, kept);
    is_faithful_ = is_faithful_ && FoldName(renamed, kept, layers_.num_kept()) == pattern;
    return renamed;
  }

  Attrs Renamed(const Attrs& attrs, int layer) {
    Attrs renamed = attrs;
    for (const Attrs::Entry& entry : attrs) {
      const std::string* text = std::get_if<std::string>(&entry.second);
      if (text != nullptr) renamed.Set(entry.first, Renamed(*text, layer));
    }
    return renamed;
  }

  const Graph& model_;
  const LayerRuns& runs_;
  const LayerMap& layers_;
  GraphBuilder builder_;
  std::vector<ValueId> made_;  // by the model's values
  bool is_faithful_ = true;    // names fold as they did
};

}  // namespace

ModelFolder::ModelFolder(const Graph& model)
    : model_(model),
      layers_(model),
      runs_(layers_.IsLayered() ? layers_.Runs() : std::vector<LayerRun>()) {}

absl::optional<FoldedModel> ModelFolder::Fold(const Recomputation& recomputation) const {
  if (!layers_.IsLayered()) return absl::nullopt;
  LayerMap map = MapMaker(runs_, recomputation).Run();
  if (!map.folds()) return absl::nullopt;
  absl::optional<Graph> folded = Folder(model_, layers_, map).Run();
  if (!folded.has_value()) return absl::nullopt;
  return FoldedModel{*std::move(folded), std::move(map)};
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
