#include "passes/simplify.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/op.h"
#include "passes/rewrite.h"

namespace mgc {
namespace {

bool IsIdentity(const Graph& graph, const Node& node) {
  const std::string& op = node.op->name;
  if (op == "dropout") return node.attrs.Real("p") == 0.0;
  if (op == "reshard")
    return graph.level() <= Level::kTraining && node.attrs.Int("pin") == 0 &&
           node.phase != Phase::kUpdate;
  return op == "stop_gradient" && graph.level() != Level::kLogical;
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
        producer != kNone && graph.node(producer).op->name == "add" &&
        users[static_cast<size_t>(id)].size() == 1 && graph.node(producer).phase == place.phase &&
        graph.node(producer).layer == place.layer && graph.type(id) == graph.type(place.outputs[0]);
    if (inner) {
      Flatten(graph, users, graph.node(producer), place, out);
    } else {
      out->push_back(id);
    }
  }
}

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
  std::map<std::tuple<Phase, int, int64_t, std::string>, ValueId> iotas;
  for (const Node& node : graph.nodes()) {
    if (node.op->name == "iota") {
      const auto key =
          std::make_tuple(node.phase, node.layer, node.attrs.Int("size"), node.attrs.Text("name"));
      auto [it, fresh] = iotas.try_emplace(key, kNone);
      if (fresh) rewriter.Copy(node);
      if (fresh) it->second = rewriter.Mapped(node.outputs[0]);
      rewriter.Map(node.outputs[0], it->second);
      continue;
    }
    if (node.op->name != "add") {
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
