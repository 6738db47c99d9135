#include "passes/graph/dim_classes.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/ir/retype.h"
#include "graph/types/layer_names.h"
#include "graph/types/tensor_type.h"

namespace mgc {
namespace {

// What names a class that the user has not named: the better the further ahead.
enum class Source : uint8_t { kParam, kSample, kData, kValue };

Source SourceOf(const Graph& graph, const DimOfValue& dim) {
  const GraphInput* input = graph.FindInput(dim.value);
  if (input == nullptr) return Source::kValue;
  if (input->kind == InputKind::kParam) return Source::kParam;
  if (input->kind != InputKind::kData) return Source::kValue;
  return dim.dim == 0 ? Source::kSample : Source::kData;
}

// The layer that a value's name speaks of: its producer's, a parameter's first reader's.
std::vector<int> LayersOf(const Graph& graph) {
  std::vector<int> layers(graph.values().size(), kNoLayer);
  const std::vector<std::vector<NodeId>> users = graph.Users();
  for (size_t v = 0; v < layers.size(); ++v) {
    const NodeId producer = graph.values()[v].producer;
    if (producer != kNone) {
      layers[v] = graph.node(producer).layer;
    } else if (!users[v].empty()) {
      layers[v] = graph.node(users[v].front()).layer;
    }
  }
  return layers;
}

std::string NameOf(const Graph& graph, const DimClass& dims, const std::vector<int>& layers) {
  const DimOfValue* best = &dims.dims.front();
  for (const DimOfValue& dim : dims.dims) {
    const std::string& given = graph.type(dim.value).dims[static_cast<size_t>(dim.dim)].name;
    if (!given.empty()) return given;
    if (SourceOf(graph, dim) < SourceOf(graph, *best)) best = &dim;
  }
  if (SourceOf(graph, *best) == Source::kSample) return kSampleDim;
  const int layer = layers[static_cast<size_t>(best->value)];
  const std::string& value = graph.value(best->value).name;
  return absl::StrCat(FoldName(value, layer, graph.num_layers()), "#", best->dim);
}

// Whether all dims have names, also where attributes state them.
bool AreNamed(const Graph& model) {
  const auto is_named = [](const Dim& dim) { return !dim.name.empty(); };
  const auto has_names = [&](const Value& value) {
    return std::all_of(value.type.dims.begin(), value.type.dims.end(), is_named);
  };
  const auto states_names = [&model](const Node& node) {
    if (!node.op->resized) return true;
    std::vector<const TensorType*> results;
    results.reserve(node.outputs.size());
    for (const ValueId id : node.outputs) results.push_back(&model.type(id));
    return RetypedAttrs(*node.op, node.attrs, results) == node.attrs;
  };
  return std::all_of(model.values().begin(), model.values().end(), has_names) &&
         std::all_of(model.nodes().begin(), model.nodes().end(), states_names);
}

}  // namespace

DimClasses::DimClasses(const Graph& graph) {
  size_t dims = 0;
  for (const Value& value : graph.values()) {
    first_.push_back(dims);
    dims += value.type.dims.size();
  }
  parents_.resize(dims);
  std::iota(parents_.begin(), parents_.end(), 0);
  for (const Node& node : graph.nodes()) Unite(graph, node);
  MakeClasses(graph);
}

// Halves the way on its walk: the least dim is the root, and ways that are never shortened are as
// long as a model whose parameters are declared in reverse.
int DimClasses::Root(int dim) {
  while (parents_[static_cast<size_t>(dim)] != dim) {
    int& parent = parents_[static_cast<size_t>(dim)];
    parent = parents_[static_cast<size_t>(parent)];
    dim = parent;
  }
  return dim;
}

void DimClasses::Unite(const Graph& graph, const Node& node) {
  const FactorRule rule = RuleOf(graph, node);
  std::vector<int> dim_of(rule.factors.size(), -1);
  const auto unite = [&](ValueId value, const TensorFactors& factors) {
    for (size_t d = 0; d < factors.size(); ++d) {
      if (factors[d].size() != 1) continue;  // dims that merge have a class of their own
      int& known = dim_of[static_cast<size_t>(factors[d][0])];
      const int dim = Root(static_cast<int>(First(value) + d));
      if (known < 0) known = dim;
      const int root = Root(known);
      parents_[static_cast<size_t>(std::max(root, dim))] = std::min(root, dim);
    }
  };
  for (size_t i = 0; i < node.inputs.size(); ++i) unite(node.inputs[i], rule.operands[i]);
  for (size_t r = 0; r < node.outputs.size(); ++r) unite(node.outputs[r], rule.results[r]);
}

void DimClasses::MakeClasses(const Graph& graph) {
  class_of_.assign(parents_.size(), -1);
  for (size_t v = 0; v < graph.values().size(); ++v) {
    const ValueId value = static_cast<ValueId>(v);
    const std::vector<Dim>& dims = graph.type(value).dims;
    for (size_t d = 0; d < dims.size(); ++d) {
      int& at = class_of_[static_cast<size_t>(Root(static_cast<int>(first_[v] + d)))];
      if (at < 0) {
        at = static_cast<int>(classes_.size());
        classes_.push_back({"", dims[d].size, {}});
      }
      class_of_[first_[v] + d] = at;
      classes_[static_cast<size_t>(at)].dims.push_back({value, static_cast<int>(d)});
    }
  }
  const std::vector<int> layers = LayersOf(graph);
  for (DimClass& dims : classes_) dims.name = NameOf(graph, dims, layers);
}

std::map<std::string, std::vector<std::string>> NamesByClass(const Graph& model,
                                                             const DimClasses& classes) {
  std::map<std::string, std::vector<std::string>> by_class;
  for (const DimClass& dims : classes.classes()) {
    std::vector<std::string>& names = by_class[dims.name];
    if (names.empty()) names.push_back(dims.name);
    for (const DimOfValue& dim : dims.dims) {
      const std::string& given = model.type(dim.value).dims[static_cast<size_t>(dim.dim)].name;
      if (given.empty() || std::find(names.begin(), names.end(), given) != names.end()) continue;
      names.push_back(given);
    }
  }
  return by_class;
}

Graph NameDims(Graph model) {
  if (AreNamed(model)) return model;
  const DimClasses classes(model);
  const auto named = [&](ValueId id) {
    TensorType type = model.type(id);
    for (size_t d = 0; d < type.dims.size(); ++d) {
      if (type.dims[d].name.empty()) type.dims[d].name = classes.Of(id, static_cast<int>(d)).name;
    }
    return type;
  };
  absl::StatusOr<Graph> renamed = Retype(model, named);
  MGC_CHECK(renamed.ok()) << renamed.status().ToString();  // sizes have not changed
  return *std::move(renamed);
}

}  // namespace mgc
