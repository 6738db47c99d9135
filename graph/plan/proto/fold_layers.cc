#include "graph/plan/proto/fold_layers.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "graph/ir/assemble.h"
#include "graph/proto/wire.h"
#include "graph/types/layer_names.h"

namespace mgc {
namespace {

using Inputs = google::protobuf::RepeatedPtrField<wire::GraphInput>;
using Nodes = google::protobuf::RepeatedPtrField<wire::Node>;
using Values = google::protobuf::RepeatedPtrField<wire::Value>;

constexpr int kFirst = 1;  // the layer that is kept for all that follow
constexpr int kMinCopies = 2;

absl::Status Refuse(absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(message, " [wire_c5]"));
}

// Inputs first, then results in program order.
void Renumber(wire::Graph* graph) {
  std::vector<int32_t> number(static_cast<size_t>(graph->values_size()), kNone);
  int32_t next = 0;
  for (const wire::GraphInput& input : graph->inputs()) number[input.value()] = next++;
  for (const wire::Node& node : graph->nodes()) {
    for (int32_t id : node.outputs()) number[id] = next++;
  }
  Values values;
  values.Reserve(graph->values_size());
  for (int i = 0; i < graph->values_size(); ++i) values.Add();
  for (int i = 0; i < graph->values_size(); ++i) {
    wire::Value* value = graph->mutable_values(i);
    if (value->primal() != kNone) value->set_primal(number[value->primal()]);
    values.Mutable(number[i])->Swap(value);
  }
  graph->mutable_values()->Swap(&values);
  for (wire::GraphInput& input : *graph->mutable_inputs()) input.set_value(number[input.value()]);
  for (wire::Node& node : *graph->mutable_nodes()) {
    for (int32_t& id : *node.mutable_inputs()) id = number[id];
    for (int32_t& id : *node.mutable_outputs()) id = number[id];
  }
  for (wire::GraphOutput& output : *graph->mutable_outputs()) {
    output.set_value(number[output.value()]);
    if (output.target() != kNone) output.set_target(number[output.target()]);
  }
}

// Makes entries of another layer from those of the first.
class Copier {
 public:
  // `layer` is as many layers behind the first as `fold` numbers inputs and values per layer.
  Copier(const wire::LayerFold& fold, int layer)
      : fold_(fold),
        layer_(layer),
        behind_(layer - kFirst),
        from_(LayerPrefix(kFirst)),
        to_(LayerPrefix(layer)) {}

  wire::Node Copy(const wire::Node& node) const {
    wire::Node copy = node;
    if (node.layer() == kFirst) copy.set_layer(layer_);
    Rename(copy.mutable_attrs());
    for (int32_t& id : *copy.mutable_inputs()) id = Shift(id);
    for (int32_t& id : *copy.mutable_outputs()) id = Shift(id);
    if (Named(node.origin())) copy.set_origin(Rename(node.origin()));
    return copy;
  }
  wire::GraphInput Copy(const wire::GraphInput& input) const {
    wire::GraphInput copy = input;
    copy.set_value(Shift(input.value()));
    Rename(copy.mutable_attrs());
    return copy;
  }
  wire::Value Copy(const wire::Value& value) const {
    wire::Value copy = value;
    if (Named(value.name())) copy.set_name(Rename(value.name()));
    copy.set_primal(Shift(value.primal()));
    return copy;
  }

 private:
  bool Named(const std::string& text) const { return absl::StrContains(text, from_); }
  std::string Rename(const std::string& text) const {
    return absl::StrReplaceAll(text, {{from_, to_}});
  }
  void Rename(google::protobuf::RepeatedPtrField<wire::Attr>* attrs) const {
    for (wire::Attr& attr : *attrs) {
      if (attr.value_case() == wire::Attr::kText && Named(attr.text())) {
        attr.set_text(Rename(attr.text()));
      }
    }
  }

  // Values of the first layer and of the one before it move along; others are the whole model's.
  int32_t Shift(int32_t id) const {
    const int64_t value = id;
    if (value >= fold_.first_result() - fold_.results()) {
      return static_cast<int32_t>(value + behind_ * fold_.results());
    }
    const int64_t input = fold_.first_input();
    const bool param = value >= input - fold_.inputs() && value < input + fold_.inputs();
    return param ? static_cast<int32_t>(value + behind_ * fold_.inputs()) : id;
  }

  const wire::LayerFold& fold_;
  const int layer_;
  const int64_t behind_;
  const std::string from_;
  const std::string to_;
};

template <typename Message>
bool Same(const Message& a, const Message& b) {
  return a.SerializeAsString() == b.SerializeAsString();
}

// Where the first layer's inputs, nodes and results begin and how many it has of each.
class FoldFinder {
 public:
  explicit FoldFinder(const wire::Graph& graph) : graph_(graph) {}

  wire::LayerFold Find() {
    wire::LayerFold fold;
    const int first = FirstNode(kFirst);
    const int second = FirstNode(kFirst + 1);
    const int input = FirstInput(kFirst);
    const int second_input = FirstInput(kFirst + 1);
    if (second <= first || second == graph_.nodes_size() || second_input < input ||
        graph_.nodes(first).outputs_size() == 0 || graph_.nodes(second).outputs_size() == 0) {
      return fold;
    }
    fold.set_first_node(first);
    fold.set_nodes(second - first);
    fold.set_first_input(input);
    fold.set_inputs(second_input - input);
    fold.set_first_result(graph_.nodes(first).outputs(0));
    fold.set_results(graph_.nodes(second).outputs(0) - fold.first_result());
    int copies = 1;
    while (IsCopy(fold, kFirst + copies)) ++copies;
    if (copies < kMinCopies) return {};
    fold.set_copies(copies);
    return fold;
  }

 private:
  // Where a layer begins, or the end of the list.
  int FirstNode(int layer) const {
    int at = 0;
    while (at < graph_.nodes_size() && graph_.nodes(at).layer() != layer) ++at;
    return at;
  }
  int FirstInput(int layer) const {
    int at = 0;
    while (at < graph_.inputs_size() &&
           !absl::StartsWith(graph_.values(graph_.inputs(at).value()).name(), LayerPrefix(layer))) {
      ++at;
    }
    return at;
  }

  bool IsCopy(const wire::LayerFold& fold, int layer) const {
    const Copier copier(fold, layer);
    const int behind = layer - kFirst;
    const int input = fold.first_input() + behind * fold.inputs();
    const int node = fold.first_node() + behind * fold.nodes();
    const int result = fold.first_result() + behind * fold.results();
    if (input + fold.inputs() > graph_.inputs_size() || node + fold.nodes() > graph_.nodes_size() ||
        result + fold.results() > graph_.values_size()) {
      return false;
    }
    for (int i = 0; i < fold.inputs(); ++i) {
      if (!Same(copier.Copy(graph_.inputs(fold.first_input() + i)), graph_.inputs(input + i)) ||
          !Same(copier.Copy(graph_.values(fold.first_input() + i)), graph_.values(input + i))) {
        return false;
      }
    }
    for (int i = 0; i < fold.nodes(); ++i) {
      if (!Same(copier.Copy(graph_.nodes(fold.first_node() + i)), graph_.nodes(node + i))) {
        return false;
      }
    }
    for (int i = 0; i < fold.results(); ++i) {
      if (!Same(copier.Copy(graph_.values(fold.first_result() + i)), graph_.values(result + i))) {
        return false;
      }
    }
    return true;
  }

  const wire::Graph& graph_;
};

// Appends `list` to `out` with the copies of entries [first, first + count) behind them.
template <typename List>
void Unfold(const List& list, int first, int count, const std::vector<Copier>& copiers, List* out) {
  out->Reserve(list.size() + count * static_cast<int>(copiers.size()));
  for (int i = 0; i < list.size(); ++i) {
    *out->Add() = list.Get(i);
    if (i + 1 != first + count) continue;
    for (const Copier& copier : copiers) {
      for (int j = first; j < first + count; ++j) *out->Add() = copier.Copy(list.Get(j));
    }
  }
}

// Values are two lists in one: those of inputs, then results.
void UnfoldValues(const wire::FoldedGraph& message, const std::vector<Copier>& copiers,
                  Values* out) {
  const wire::LayerFold& fold = message.fold();
  const int folded_inputs = fold.inputs() * static_cast<int>(copiers.size());
  const int first_result = fold.first_result() - folded_inputs;
  Values once;
  Unfold(message.graph().values(), first_result, fold.results(), copiers, &once);
  Unfold(once, fold.first_input(), fold.inputs(), copiers, out);
}

bool InRange(int64_t first, int64_t count, int64_t size) {
  return first >= 0 && count >= 0 && first <= size && count <= size - first;
}

absl::Status CheckFold(const wire::FoldedGraph& message) {
  const wire::LayerFold& fold = message.fold();
  const wire::Graph& graph = message.graph();
  const int64_t folded = int64_t{fold.copies()} - 1;
  if (folded < 1 || folded > kMaxLayers || fold.nodes() < 1 || fold.results() < 1) {
    return Refuse(absl::StrCat("a layer of ", fold.nodes(), " nodes with ", fold.results(),
                               " results stands for ", fold.copies()));
  }
  // Bounds every product below.
  const int64_t items =
      int64_t{graph.inputs_size()} + graph.nodes_size() + graph.values_size() +
      folded * (2 * int64_t{fold.inputs()} + int64_t{fold.nodes()} + int64_t{fold.results()});
  if (fold.inputs() < 0 || items > kMaxUnfoldedItems) {
    return Refuse(absl::StrCat("the model unfolds to ", items, " inputs, nodes and values"));
  }
  const int64_t first_result = fold.first_result() - folded * fold.inputs();
  if (!InRange(fold.first_input(), fold.inputs(), graph.inputs_size()) ||
      !InRange(fold.first_node(), fold.nodes(), graph.nodes_size()) ||
      !InRange(first_result, fold.results(), graph.values_size()) ||
      first_result < fold.first_input() + fold.inputs()) {
    return Refuse("the folded layer lies outside of its graph");
  }
  return absl::OkStatus();
}

absl::Status CheckBytes(const wire::FoldedGraph& message) {
  const wire::LayerFold& fold = message.fold();
  const wire::Graph& graph = message.graph();
  int64_t bytes = 0;
  for (int i = 0; i < fold.nodes(); ++i) {
    bytes += static_cast<int64_t>(graph.nodes(fold.first_node() + i).ByteSizeLong());
  }
  for (int i = 0; i < fold.inputs(); ++i) {
    bytes += static_cast<int64_t>(graph.inputs(fold.first_input() + i).ByteSizeLong());
  }
  for (const wire::Value& value : graph.values()) {
    bytes += static_cast<int64_t>(value.ByteSizeLong());
  }
  // A new number of a layer is at most seven digits longer, wherever a name holds one.
  if (bytes > kMaxUnfoldedBytes / fold.copies() / 2) {
    return Refuse(absl::StrCat("the model unfolds to more than ", kMaxUnfoldedBytes, " bytes"));
  }
  return absl::OkStatus();
}

}  // namespace

void FoldLayers(const Graph& graph, wire::FoldedGraph* out) {
  wire::Graph* message = out->mutable_graph();
  ToWire(graph, message);
  Renumber(message);
  const wire::LayerFold fold = FoldFinder(*message).Find();
  if (fold.copies() < kMinCopies) return;
  *out->mutable_fold() = fold;
  const int folded = fold.copies() - 1;
  message->mutable_nodes()->DeleteSubrange(fold.first_node() + fold.nodes(), folded * fold.nodes());
  message->mutable_values()->DeleteSubrange(fold.first_result() + fold.results(),
                                            folded * fold.results());
  message->mutable_values()->DeleteSubrange(fold.first_input() + fold.inputs(),
                                            folded * fold.inputs());
  message->mutable_inputs()->DeleteSubrange(fold.first_input() + fold.inputs(),
                                            folded * fold.inputs());
}

absl::StatusOr<wire::Graph> UnfoldLayers(const wire::FoldedGraph& message) {
  if (!message.has_fold()) return message.graph();
  absl::Status status = CheckFold(message);
  if (status.ok()) status = CheckBytes(message);
  if (!status.ok()) return status;
  const wire::LayerFold& fold = message.fold();
  std::vector<Copier> copiers;
  for (int i = 1; i < fold.copies(); ++i) copiers.emplace_back(fold, kFirst + i);
  wire::Graph graph = message.graph();
  graph.clear_nodes();
  graph.clear_inputs();
  graph.clear_values();
  const wire::Graph& from = message.graph();
  Unfold(from.nodes(), fold.first_node(), fold.nodes(), copiers, graph.mutable_nodes());
  Unfold(from.inputs(), fold.first_input(), fold.inputs(), copiers, graph.mutable_inputs());
  UnfoldValues(message, copiers, graph.mutable_values());
  return graph;
}

}  // namespace mgc
