#include "passes/fold/fold_model.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "graph/types/layer_names.h"
#include "passes/fold/layer_runs.h"

namespace mgc {
namespace {

// Of a long run, and of many rounds: the first two and the last.
constexpr int kKept = 3;

// Equal layers of which the same is computed again.
struct AlikeRun {
  LayerRun layers;
  size_t of = 0;  // the run of equal layers that it is part of
  RecomputeKind kind = RecomputeKind::kNone;

  int length() const { return layers.last - layers.first + 1; }
};

bool AreAlike(const AlikeRun& a, const AlikeRun& b) {
  return a.of == b.of && a.kind == b.kind && a.length() == b.length();
}

std::vector<AlikeRun> SplitByKind(const std::vector<LayerRun>& runs,
                                  const Recomputation& recomputation) {
  std::vector<AlikeRun> split;
  for (size_t r = 0; r < runs.size(); ++r) {
    LayerRun run = runs[r];
    for (int layer = run.first + 1; layer <= run.last; ++layer) {
      if (recomputation.Of(layer) == recomputation.Of(run.first)) continue;
      const LayerRun ended{run.first, layer - 1, run.one_place};
      split.push_back({ended, r, recomputation.Of(run.first)});
      run.first = layer;
    }
    split.push_back({run, r, recomputation.Of(run.first)});
  }
  return split;
}

// Runs that take turns.
struct Rounds {
  size_t runs = 0;  // of one round
  size_t count = 0;
};

// Says what stands for each layer.
class MapMaker {
 public:
  explicit MapMaker(std::vector<AlikeRun> runs) : runs_(std::move(runs)) {}

  LayerMap Run() && {
    for (size_t r = 0; r < runs_.size();) {
      const Rounds rounds = RoundsAt(r);
      if (rounds.count > kKept) {
        AddRounds(r, rounds);
        r += rounds.runs * rounds.count;
      } else {
        AddRuns(r++, 1);
      }
    }
    rounds_.resize(static_cast<size_t>(next_), 1);
    return LayerMap(std::move(kept_), std::move(rounds_), one_place_);
  }

 private:
  // Those of which most need not be kept.
  Rounds RoundsAt(size_t first) const {
    Rounds best;
    size_t most = 0;
    for (size_t runs = 2; first + (kKept + 1) * runs <= runs_.size(); ++runs) {
      size_t end = first + runs;
      while (end < runs_.size() && AreAlike(runs_[end], runs_[end - runs])) ++end;
      const size_t count = (end - first) / runs;
      const size_t saved = count > kKept ? (count - kKept) * runs : 0;
      if (saved <= most) continue;
      most = saved;
      best = {runs, count};
    }
    return best;
  }

  void AddRounds(size_t first, const Rounds& rounds) {
    const auto begin = static_cast<size_t>(next_);
    AddRuns(first, rounds.runs);
    const int kept_of_round = next_ - static_cast<int>(begin);
    const size_t second = kept_.size();
    AddRuns(first + rounds.runs, rounds.runs);
    const size_t layers = kept_.size() - second;
    for (size_t i = 0; i < (rounds.count - kKept) * layers; ++i) {
      const int kept = kept_[second + i % layers];
      kept_.push_back(kept);
    }
    AddRuns(first + (rounds.count - 1) * rounds.runs, rounds.runs);
    rounds_.resize(begin, 1);
    rounds_.resize(static_cast<size_t>(next_), kept_of_round);
    one_place_ = one_place_ && runs_[first].layers.one_place;
  }

  // The first of a long run, the second for all behind it, and the last.
  void AddRuns(size_t first, size_t count) {
    for (size_t r = first; r < first + count; ++r) {
      const LayerRun& run = runs_[r].layers;
      const bool is_long = runs_[r].length() > kKept;
      one_place_ = one_place_ && (!is_long || run.one_place);
      for (int layer = run.first; layer <= run.last; ++layer) {
        const bool is_between = is_long && layer > run.first + 1 && layer < run.last;
        kept_.push_back(is_between ? next_ - 1 : next_++);
      }
    }
  }

  const std::vector<AlikeRun> runs_;
  std::vector<int> kept_;    // by layer
  std::vector<int> rounds_;  // by kept layer
  int next_ = 0;
  bool one_place_ = true;
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

  // What a layer reads; of a layer before it that is not kept, what the one in its place hands on.
  ValueId Read(ValueId id, int layer) const {
    if (Made(id) != kNone) return Made(id);
    return Made(runs_.HandedBy(layers_.FirstOf(layers_.KeptFor(layer - 1))));
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
  LayerMap map = MapMaker(SplitByKind(runs_, recomputation)).Run();
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
