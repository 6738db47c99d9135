#include "passes/graph/large_products.h"

#include <algorithm>
#include <cstdint>

#include "graph/ir/op.h"

namespace mgc {
namespace {

class Finder {
 public:
  explicit Finder(const Graph& graph)
      : graph_(graph), of_data_(graph.values().size()), large_(graph.values().size()) {
    for (const GraphInput& input : graph.inputs()) {
      of_data_[Index(input.value)] = input.kind == InputKind::kData;
    }
  }

  std::vector<bool> Run() {
    std::vector<bool> found;
    found.reserve(graph_.nodes().size());
    for (const Node& node : graph_.nodes()) {
      const bool of_data = std::any_of(node.inputs.begin(), node.inputs.end(),
                                       [&](ValueId id) { return of_data_[Index(id)]; });
      const bool large = of_data && node.phase == Phase::kForward && MakesLarge(node);
      for (ValueId id : node.outputs) {
        of_data_[Index(id)] = of_data;
        large_[Index(id)] = large;
      }
      found.push_back(large);
    }
    return found;
  }

 private:
  static size_t Index(ValueId id) { return static_cast<size_t>(id); }
  int64_t Elements(ValueId id) const { return graph_.type(id).NumElements(); }

  bool MakesLarge(const Node& node) const {
    if (node.outputs.empty() || node.op->collective || node.op->Has(OpRole::kCollect)) return false;
    const int64_t made = Elements(node.outputs[0]);
    if (IsProduct(node)) {
      const ValueId a = node.inputs[0], b = node.inputs[1];
      return of_data_[Index(a)] && of_data_[Index(b)] && made > Elements(a) + Elements(b);
    }
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      return large_[Index(id)] && made >= Elements(id) && InLayerOf(id, node);
    });
  }

  static bool IsProduct(const Node& node) {
    return node.op->precision == Precision::kNarrow && node.inputs.size() == 2;
  }
  bool InLayerOf(ValueId id, const Node& node) const {
    const NodeId producer = graph_.value(id).producer;
    return producer != kNone && graph_.node(producer).layer == node.layer;
  }

  const Graph& graph_;
  std::vector<bool> of_data_;  // by value: depends on data
  std::vector<bool> large_;    // by value
};

}  // namespace

std::vector<bool> LargeProducts(const Graph& graph) { return Finder(graph).Run(); }

}  // namespace mgc
