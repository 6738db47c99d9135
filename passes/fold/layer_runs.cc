#include "passes/fold/layer_runs.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "graph/types/layer_names.h"

namespace mgc {
namespace {

constexpr int kShared = -3;  // the layer of a parameter that several read

bool AreSame(const SourceLoc& a, const SourceLoc& b) {
  return std::tie(a.file, a.line, a.column) == std::tie(b.file, b.line, b.column);
}

}  // namespace

LayerRuns::LayerRuns(const Graph& model)
    : model_(model),
      homes_(model.values().size()),
      contents_(static_cast<size_t>(model.num_layers()) + 2),
      param_at_(model.values().size(), 0) {
  prefixes_.reserve(static_cast<size_t>(model.num_layers()));
  for (int layer = 0; layer < model.num_layers(); ++layer) {
    prefixes_.push_back(LayerPrefix(layer));
  }
  is_layered_ = model.level() == Level::kLogical && PlaceNodes() && PlaceReads() && PlaceInputs() &&
                PlaceOutputs();
}

bool LayerRuns::PlaceNodes() {
  int before = kEmbeddingLayer;
  for (size_t n = 0; n < model_.nodes().size(); ++n) {
    const Node& node = model_.nodes()[n];
    if (node.phase != Phase::kForward || node.layer < before || node.layer > model_.num_layers()) {
      return false;
    }
    before = node.layer;
    Contents& layer = at(node.layer);
    layer.nodes.push_back(static_cast<NodeId>(n));
    for (const ValueId id : node.outputs) {
      homes_[static_cast<size_t>(id)] = {node.layer, layer.num_results++};
    }
  }
  return true;
}

bool LayerRuns::PlaceReads() {
  for (const Node& node : model_.nodes()) {
    for (const ValueId id : node.inputs) {
      if (!TakeRead(id, node.layer)) return false;
    }
  }
  return true;
}

// False where the value goes where values may not.
bool LayerRuns::TakeRead(ValueId id, int reader) {
  Home& home = homes_[static_cast<size_t>(id)];
  if (!IsMade(id)) {
    const bool is_param = model_.FindInput(id)->kind == InputKind::kParam;
    if (!is_param || home.layer == reader) return true;
    const bool is_first = home.layer == kNoLayer;
    const bool ends_alone = !IsInner(reader) && !IsInner(home.layer);
    home.layer = is_first ? reader : kShared;
    return is_first || ends_alone;
  }
  if (home.layer == reader) return true;
  if (home.layer + 1 != reader) return false;
  ValueId& handed = at(home.layer).handed;
  if (handed == kNone) handed = id;
  return handed == id;
}

bool LayerRuns::PlaceInputs() {
  for (const GraphInput& input : model_.inputs()) {
    if (input.kind == InputKind::kData) continue;
    if (input.kind != InputKind::kParam) return false;
    Home& home = homes_[static_cast<size_t>(input.value)];
    param_at_[static_cast<size_t>(input.value)] = params_.size();
    params_.push_back(input.value);
    if (home.layer == kShared) home.layer = kNoLayer;
    if (home.layer == kNoLayer) continue;
    std::vector<ValueId>& params = at(home.layer).params;
    home.number = static_cast<int>(params.size());
    params.push_back(input.value);
  }
  return true;
}

bool LayerRuns::PlaceOutputs() {
  for (const GraphOutput& output : model_.outputs()) {
    if (!IsMade(output.value)) return false;
    at(LayerOf(output.value)).has_output = true;
  }
  return true;
}

std::vector<LayerRun> LayerRuns::Runs() const {
  std::vector<LayerRun> runs;
  for (int first = 0; first < model_.num_layers(); first = runs.back().last + 1) {
    LayerRun run{first, first};
    while (IsNext(run)) run.one_place &= HaveOnePlace(run.last++);
    runs.push_back(run);
  }
  return runs;
}

// Whether the layer behind a run is one of it: parameters too lie layer by layer.
bool LayerRuns::IsNext(const LayerRun& run) const {
  const int next = run.last + 1;
  if (next >= model_.num_layers() || !AreEqual(run.last)) return false;
  const auto number_handed = [this](int layer) {
    const ValueId handed = HandedBy(layer);
    return handed == kNone ? kNone : home(handed).number;
  };
  if (number_handed(run.last) != number_handed(run.first)) return false;
  const std::vector<ValueId>& params = at(run.first).params;
  for (size_t p = 0; p < params.size(); ++p) {
    const size_t behind = static_cast<size_t>(next - run.first) * params.size() + p;
    if (PlaceOf(params[0]) + p != PlaceOf(params[p]) ||
        PlaceOf(params[0]) + behind != PlaceOf(at(next).params[p])) {
      return false;
    }
  }
  return true;
}

// Whether a layer and the next one are equal.
bool LayerRuns::AreEqual(int layer) const {
  const Contents& a = at(layer);
  const Contents& b = at(layer + 1);
  if (a.has_output || b.has_output || a.nodes.size() != b.nodes.size() ||
      a.params.size() != b.params.size()) {
    return false;
  }
  for (size_t p = 0; p < a.params.size(); ++p) {
    const Attrs& attrs = model_.FindInput(a.params[p])->attrs;
    const Attrs& next = model_.FindInput(b.params[p])->attrs;
    if (!AreAlike(a.params[p], b.params[p], layer) || !AreAlike(attrs, next, layer)) return false;
  }
  for (size_t n = 0; n < a.nodes.size(); ++n) {
    if (!AreEqual(model_.node(a.nodes[n]), model_.node(b.nodes[n]), layer)) return false;
  }
  return true;
}

// Whether a layer and the next one, which are equal, are from the same source locations.
bool LayerRuns::HaveOnePlace(int layer) const {
  const std::vector<NodeId>& nodes = at(layer).nodes;
  const std::vector<NodeId>& next = at(layer + 1).nodes;
  return std::equal(nodes.begin(), nodes.end(), next.begin(), [this](NodeId a, NodeId b) {
    return AreSame(model_.node(a).loc, model_.node(b).loc);
  });
}

bool LayerRuns::AreEqual(const Node& node, const Node& next, int layer) const {
  if (node.op != next.op || node.inputs.size() != next.inputs.size() ||
      node.outputs.size() != next.outputs.size() || !FoldAlike(node.origin, next.origin, layer) ||
      !AreAlike(node.attrs, next.attrs, layer)) {
    return false;
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!ReadSame(node.inputs[i], next.inputs[i], layer)) return false;
  }
  for (size_t r = 0; r < node.outputs.size(); ++r) {
    if (!AreAlike(node.outputs[r], next.outputs[r], layer)) return false;
  }
  return true;
}

bool LayerRuns::ReadSame(ValueId id, ValueId next, int layer) const {
  if (id == next) return true;  // data
  if (IsMade(id) != IsMade(next) || home(id).layer + 1 != home(next).layer) return false;
  // Of the layer before there is one value only.
  if (home(next).layer == layer) return model_.type(id) == model_.type(next);
  return home(next).layer == layer + 1 && home(id).number == home(next).number;
}

bool LayerRuns::AreAlike(ValueId id, ValueId next, int layer) const {
  const Value& a = model_.value(id);
  const Value& b = model_.value(next);
  return a.type == b.type && a.sharding == b.sharding && a.primal == kNone && b.primal == kNone &&
         FoldAlike(a.name, b.name, layer);
}

bool LayerRuns::AreAlike(const Attrs& attrs, const Attrs& next, int layer) const {
  return std::equal(attrs.begin(), attrs.end(), next.begin(), next.end(),
                    [&](const Attrs::Entry& a, const Attrs::Entry& b) {
                      const std::string* text = std::get_if<std::string>(&a.second);
                      const std::string* next_text = std::get_if<std::string>(&b.second);
                      if (a.first != b.first) return false;
                      if (text == nullptr || next_text == nullptr) return a.second == b.second;
                      return FoldAlike(*text, *next_text, layer);
                    });
}

// Whether two texts fold to one, the second seen from the layer behind.
bool LayerRuns::FoldAlike(absl::string_view text, absl::string_view next, int layer) const {
  // What nearly all names look like, without folding them.
  absl::string_view rest = text;
  absl::string_view next_rest = next;
  if (absl::ConsumePrefix(&rest, prefixes_[static_cast<size_t>(layer)]) &&
      absl::ConsumePrefix(&next_rest, prefixes_[static_cast<size_t>(layer) + 1]) &&
      rest == next_rest && !absl::StrContains(rest, ' ') && !absl::StrContains(rest, "layers.")) {
    return true;
  }
  return FoldName(text, layer, model_.num_layers()) ==
         FoldName(next, layer + 1, model_.num_layers());
}

}  // namespace mgc
