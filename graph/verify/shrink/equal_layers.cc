#include "graph/verify/shrink/equal_layers.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/ir/op.h"
#include "graph/types/layer_names.h"

namespace mgc {
namespace {

// Equal texts stand for equal values; those that name the layer are patterns.
std::string TextOf(const AttrValue& value, int layer, int num_layers) {
  if (const auto* number = std::get_if<int64_t>(&value)) return absl::StrCat(*number);
  if (const auto* number = std::get_if<double>(&value)) return absl::StrFormat("%a", *number);
  if (const auto* text = std::get_if<std::string>(&value)) {
    const std::string folded = FoldName(*text, layer, num_layers);
    return absl::StrCat(folded.size(), "\"", folded);
  }
  return absl::StrCat("[", absl::StrJoin(std::get<std::vector<int64_t>>(value), ","), "]");
}

std::string TextOf(const Attrs& attrs, int layer, int num_layers) {
  std::string text = "{";
  for (const Attrs::Entry& entry : attrs) {
    absl::StrAppend(&text, entry.first, "=", TextOf(entry.second, layer, num_layers), ";");
  }
  return text + "}";
}

}  // namespace

EqualLayers::EqualLayers(const Graph& model)
    : model_(model), owners_(model.values().size(), kNoLayer), places_(model.values().size(), 0) {
  const size_t layers = static_cast<size_t>(std::max(model.num_layers(), 0));
  const bool in_order =
      std::is_sorted(model.nodes().begin(), model.nodes().end(),
                     [](const Node& a, const Node& b) { return a.layer < b.layer; });
  if (!in_order || layers > model.nodes().size()) return;  // no builder of ours made it
  layers_.resize(layers);
  FindOwnersAndAlone();
  for (const Node& node : model.nodes()) {
    if (IsLayer(node.layer)) AddNode(node);
  }
  for (int layer = 1; IsLayer(layer); ++layer) At(layer).repeats = IsRepeated(layer);
}

int EqualLayers::LayerOfProducer(ValueId value) const {
  const NodeId producer = model_.value(value).producer;
  return producer == kNone ? kNoLayer : model_.node(producer).layer;
}

void EqualLayers::FindOwnersAndAlone() {
  const std::vector<std::vector<NodeId>> users = model_.Users();
  for (const GraphInput& input : model_.inputs()) {
    const std::vector<NodeId>& reads = users[static_cast<size_t>(input.value)];
    if (input.kind != InputKind::kParam || reads.empty()) continue;
    const int layer = model_.node(reads[0]).layer;
    const bool one = std::all_of(reads.begin(), reads.end(),
                                 [&](NodeId id) { return model_.node(id).layer == layer; });
    if (one) owners_[static_cast<size_t>(input.value)] = layer;
  }
  for (size_t v = 0; v < users.size(); ++v) {
    const int layer = LayerOfProducer(static_cast<ValueId>(v));
    if (!IsLayer(layer)) continue;
    for (NodeId id : users[v]) {
      const int reader = model_.node(id).layer;
      At(layer).alone |= reader != layer && reader != layer + 1;
    }
  }
  for (const GraphOutput& output : model_.outputs()) {
    const int layer = LayerOfProducer(output.value);
    if (IsLayer(layer)) At(layer).alone = true;
  }
}

// What a layer reads: its own results and parameters by their numbers in it, the rest by type.
void EqualLayers::AddOperand(ValueId value, int layer) {
  Layer& at = At(layer);
  if (LayerOfProducer(value) == layer) {
    absl::StrAppend(&at.text, " m", PlaceOf(value));
    return;
  }
  const bool owned = owners_[static_cast<size_t>(value)] == layer;
  const auto [it, is_new] = numbers_.try_emplace({layer, value}, numbers_.size());
  if (is_new) {
    it->second = at.read.size();
    at.read.push_back(value);
    absl::StrAppend(&at.text, " ", model_.type(value).ToString());
    const GraphInput* input = model_.FindInput(value);
    if (owned) absl::StrAppend(&at.text, TextOf(input->attrs, layer, model_.num_layers()));
  }
  absl::StrAppend(&at.text, owned ? " p" : " o", it->second);
}

void EqualLayers::AddNode(const Node& node) {
  Layer& at = At(node.layer);
  absl::StrAppend(&at.text, node.op->name, TextOf(node.attrs, node.layer, model_.num_layers()));
  for (ValueId value : node.inputs) AddOperand(value, node.layer);
  for (ValueId value : node.outputs) {
    places_[static_cast<size_t>(value)] = at.made.size();
    at.made.push_back(value);
    absl::StrAppend(&at.text, " = ", model_.type(value).ToString());
  }
  absl::StrAppend(&at.text, "\n");
}

bool EqualLayers::IsSamePlace(ValueId value, int layer, ValueId other, int other_layer) const {
  return LayerOfProducer(value) == layer && LayerOfProducer(other) == other_layer &&
         PlaceOf(value) == PlaceOf(other);
}

bool EqualLayers::Owns(int layer, ValueId param) const {
  return owners_[static_cast<size_t>(param)] == layer;
}

bool EqualLayers::IsRepeated(int layer) const {
  const Layer& before = At(layer - 1);
  const Layer& now = At(layer);
  if (before.alone || now.alone || now.text.empty() || before.text != now.text) return false;
  for (size_t i = 0; i < now.read.size(); ++i) {
    if (now.read[i] == before.read[i]) continue;
    if (Owns(layer, now.read[i]) && Owns(layer - 1, before.read[i])) continue;
    if (LayerOfProducer(now.read[i]) != layer - 1) return false;
    // Where a run of equal layers begins, the first reads what lies before it.
    if (before.repeats && !IsSamePlace(now.read[i], layer - 1, before.read[i], layer - 2)) {
      return false;
    }
  }
  return true;
}

std::vector<int> EqualLayers::LayersBeforeGaps(const std::vector<LayerGap>& gaps) const {
  std::vector<int> before(layers_.size(), kNoLayer);
  for (const LayerGap& gap : gaps) {
    for (int layer = gap.first; layer <= gap.last; ++layer) {
      before[static_cast<size_t>(layer)] = gap.first - 1;
    }
  }
  return before;
}

Graph EqualLayers::WithoutLayers(const std::vector<LayerGap>& gaps) const {
  const std::vector<int> layers = LayersBeforeGaps(gaps);
  const auto before_gap = [&](int layer) {
    return IsLayer(layer) ? layers[static_cast<size_t>(layer)] : kNoLayer;
  };
  GraphBuilder builder(model_.name(), model_.level());
  builder.set_num_layers(model_.num_layers());
  for (const std::string& file : model_.files()) builder.AddFile(file);
  std::vector<ValueId> made(model_.values().size(), kNone);
  const auto now = [&](ValueId old) -> ValueId& { return made[static_cast<size_t>(old)]; };
  for (const GraphInput& input : model_.inputs()) {
    if (before_gap(owners_[static_cast<size_t>(input.value)]) != kNoLayer) continue;
    const Value& value = model_.value(input.value);
    now(input.value) = builder.AddInput(value.name, value.type, input.kind, input.attrs);
  }
  for (const Node& node : model_.nodes()) {
    if (const int before = before_gap(node.layer); before != kNoLayer) {
      for (ValueId id : node.outputs) now(id) = now(At(before).made[PlaceOf(id)]);
      continue;
    }
    Node copy = node;
    for (ValueId& id : copy.inputs) id = now(id);
    std::vector<Value> results;
    for (ValueId id : node.outputs) results.push_back(model_.value(id));
    const NodeId appended = builder.AppendRaw(std::move(copy), std::move(results));
    for (size_t r = 0; r < node.outputs.size(); ++r) {
      now(node.outputs[r]) = builder.graph().node(appended).outputs[r];
    }
  }
  for (GraphOutput output : model_.outputs()) {
    output.value = now(output.value);
    builder.AddOutput(std::move(output));
  }
  return std::move(builder).Finish();
}

}  // namespace mgc
