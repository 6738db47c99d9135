#include "passes/graph/rewrite.h"

#include <utility>

#include "graph/base/status.h"
#include "graph/ir/op.h"

namespace mgc {

Rewriter::Rewriter(const Graph& source, Level level, Inputs inputs)
    : source_(source), builder_(source.name(), level), map_(source.values().size(), kNone) {
  builder_.set_mesh(source.mesh());
  builder_.set_num_layers(source.num_layers());
  for (const std::string& file : source.files()) builder_.AddFile(file);
  if (inputs == Inputs::kNone) return;
  for (const GraphInput& input : source.inputs()) CopyInput(input);
}

void Rewriter::CopyInput(const GraphInput& input) {
  const Value& value = source_.value(input.value);
  Map(input.value,
      builder_.AddInput(value.name, value.type, input.kind, input.attrs, value.sharding));
}

NodeId Rewriter::Copy(const Node& node) {
  std::vector<ValueId> inputs = node.inputs;
  for (ValueId& id : inputs) {
    id = Mapped(id);
    MGC_CHECK(id != kNone) << "a copied " << node.op->name << " reads a value that was dropped";
  }
  return CopyReading(node, std::move(inputs));
}

NodeId Rewriter::CopyReading(const Node& node, std::vector<ValueId> inputs) {
  Node copy = node;
  copy.inputs = std::move(inputs);
  std::vector<Value> results;
  for (ValueId id : node.outputs) {
    results.push_back(source_.value(id));
    if (const auto name = names_.find(id); name != names_.end()) {
      results.back().name = name->second;
    }
    ValueId& primal = results.back().primal;
    if (primal != kNone) primal = Mapped(primal);
  }
  const NodeId made = builder_.AppendRaw(std::move(copy), std::move(results));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    Map(node.outputs[i], builder_.graph().node(made).outputs[i]);
  }
  return made;
}

Graph Rewriter::Finish() && {
  for (GraphOutput output : source_.outputs()) {
    output.value = Mapped(output.value);
    if (output.target != kNone) output.target = Mapped(output.target);
    MGC_CHECK(output.value != kNone) << "an output was dropped";
    builder_.AddOutput(std::move(output));
  }
  return std::move(builder_).Finish();
}

Graph DropDeadNodes(const Graph& graph) {
  std::vector<bool> live(graph.values().size(), false);
  for (const GraphOutput& output : graph.outputs()) live[static_cast<size_t>(output.value)] = true;
  std::vector<bool> keep(graph.nodes().size(), false);
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    for (ValueId id : node.outputs) keep[n] = keep[n] || live[static_cast<size_t>(id)];
    if (!keep[n]) continue;
    for (ValueId id : node.inputs) live[static_cast<size_t>(id)] = true;
  }
  Rewriter rewriter(graph, graph.level());
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    if (keep[n]) rewriter.Copy(graph.nodes()[n]);
  }
  return std::move(rewriter).Finish();
}

}  // namespace mgc
