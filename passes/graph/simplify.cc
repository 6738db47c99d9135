#include "passes/graph/simplify.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "graph/ir/op.h"
#include "passes/graph/rewrite.h"

namespace mgc {
namespace {

// Identities that serve something yet stay: shardings until they are spelled out, one that stops
// gradients until these are taken.
bool IsIdentity(const Graph& graph, const Node& node) {
  if (!node.op->identity || !node.op->identity(node.attrs)) return false;
  if (node.op->Has(OpRole::kReshard)) {
    return graph.level() <= Level::kTraining && node.phase != Phase::kUpdate;
  }
  return node.op->grad || graph.level() != Level::kLogical;
}

// First, so that sums with nothing but identities between them meet.
Graph WithoutIdentities(const Graph& graph) {
  Rewriter rewriter(graph, graph.level());
  for (const Node& node : graph.nodes()) {
    if (IsIdentity(graph, node)) {
      rewriter.Map(node.outputs[0], rewriter.Mapped(node.inputs[0]));
    } else {
      rewriter.Copy(node);
    }
  }
  return std::move(rewriter).Finish();
}

// Operands of an add with inner adds of the same place, used only here, taken apart.
void Flatten(const Graph& graph, const std::vector<std::vector<NodeId>>& users, const Node& node,
             const Node& place, std::vector<ValueId>* out) {
  for (ValueId id : node.inputs) {
    const NodeId producer = graph.value(id).producer;
    const bool inner =
        producer != kNone && graph.node(producer).op->Has(OpRole::kSum) &&
        users[static_cast<size_t>(id)].size() == 1 && graph.node(producer).phase == place.phase &&
        graph.node(producer).layer == place.layer && graph.type(id) == graph.type(place.outputs[0]);
    if (inner) {
      Flatten(graph, users, graph.node(producer), place, out);
    } else {
      out->push_back(id);
    }
  }
}

// Indices made from nothing, by place: made again there, they are the same.
class IndexSources {
 public:
  explicit IndexSources(const Graph& graph) : graph_(graph) {}

  // An earlier result that stands for the node's, or kNone.
  ValueId SameAs(const Node& node) {
    if (!node.inputs.empty() || graph_.type(node.outputs[0]).dtype != DType::kI64) return kNone;
    std::vector<const Node*>& known = by_place_[{node.phase, node.layer}];
    for (const Node* other : known) {
      if (other->op == node.op && other->attrs == node.attrs) return other->outputs[0];
    }
    known.push_back(&node);
    return kNone;
  }

 private:
  const Graph& graph_;
  std::map<std::pair<Phase, int>, std::vector<const Node*>> by_place_;
};

// The full-shaped operands first: an add takes its shape from operand 0.
void FullShapeFirst(const Graph& graph, ValueId result, std::vector<ValueId>* operands) {
  std::stable_partition(operands->begin(), operands->end(), [&](ValueId id) {
    return graph.type(id).ndim() == graph.type(result).ndim();
  });
}

}  // namespace

Graph Simplify(const Graph& source) {
  const Graph graph = WithoutIdentities(source);
  const std::vector<std::vector<NodeId>> users = graph.Users();
  Rewriter rewriter(graph, graph.level());
  IndexSources indices(graph);
  for (const Node& node : graph.nodes()) {
    if (const ValueId same = indices.SameAs(node); same != kNone) {
      rewriter.Map(node.outputs[0], rewriter.Mapped(same));
      continue;
    }
    if (!node.op->Has(OpRole::kSum)) {
      rewriter.Copy(node);
      continue;
    }
    Node flat = node;
    flat.inputs.clear();
    Flatten(graph, users, node, node, &flat.inputs);
    FullShapeFirst(graph, node.outputs[0], &flat.inputs);
    rewriter.Copy(flat);
  }
  return DropDeadNodes(std::move(rewriter).Finish());
}

}  // namespace mgc
