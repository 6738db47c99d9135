// Whether shardings follow from the ops' factor rules: sharded_c*, local_c* of graph/ir/check.h.

#include <string>

#include "absl/strings/str_cat.h"
#include "graph/ir/assemble.h"
#include "graph/ir/check_internal.h"
#include "graph/ir/check_op_sharding.h"
#include "graph/ir/op.h"

namespace mgc {
namespace {

absl::string_view LabelOf(ShardingFaultKind kind) {
  switch (kind) {
    case ShardingFaultKind::kOperandCut:
      return "sharded_c3";
    case ShardingFaultKind::kResultCut:
      return "sharded_c4";
    case ShardingFaultKind::kOwedOperand:
    case ShardingFaultKind::kOwedResult:
      return "sharded_c5";
    case ShardingFaultKind::kCollective:
      return "local_c3";
    case ShardingFaultKind::kNoRule:
      break;  // graph_c2 has reported it
  }
  return "";
}

void CheckNode(const Graph& graph, const Node& node, ViolationList* violations) {
  const bool local = graph.level() == Level::kLocal;
  if (node.op->collective && !local) return;  // sharded_c2 has reported it
  if (node.op->name == "reshard" && local) {
    violations->AddAt(node, "local_c1", "is a `reshard`, which a local graph spells out");
    return;
  }
  OpSharding use;
  use.op = node.op;
  use.attrs = &node.attrs;
  use.mesh = &graph.mesh();
  const auto laid_out = [&](ValueId id) {
    return LaidOut{graph.value(id).name, &graph.type(id), &graph.sharding(id)};
  };
  for (ValueId id : node.inputs) use.operands.push_back(laid_out(id));
  for (ValueId id : node.outputs) use.results.push_back(laid_out(id));
  for (const ShardingFault& fault : CheckOpSharding(use)) {
    if (fault.kind == ShardingFaultKind::kNoRule) continue;
    violations->AddAt(node, LabelOf(fault.kind), fault.text);
  }
}

// sharded_c1; true when every value has a sharding that can be looked at.
bool CheckValues(const Graph& graph, ViolationList* violations) {
  bool all = true;
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const Value& value = graph.values()[i];
    const absl::Status status = value.sharding
                                    ? CheckShardingBounds(value.type, *value.sharding, graph.mesh())
                                    : absl::InvalidArgumentError("has no sharding");
    if (status.ok()) continue;
    all = false;
    violations->AddAt(static_cast<ValueId>(i), "sharded_c1", std::string(status.message()));
  }
  return all;
}

void CheckEnds(const Graph& graph, ViolationList* violations) {
  for (const GraphInput& input : graph.inputs()) {
    const Sharding& sharding = graph.sharding(input.value);
    if (sharding.Owed().empty() || input.kind == InputKind::kAccumulator) continue;
    violations->AddAt(input.value, "sharded_c5",
                      absl::StrCat("is a ", NameOf(input.kind),
                                   " that owes: ", ToString(sharding, graph.mesh())));
  }
  for (const GraphOutput& output : graph.outputs()) {
    const Sharding& sharding = graph.sharding(output.value);
    if (output.kind == OutputKind::kAssign && sharding != graph.sharding(output.target)) {
      violations->AddAt(output.value, "sharded_c6",
                        absl::StrCat("is ", ToString(sharding, graph.mesh()),
                                     " and is assigned to ", violations->NameOfValue(output.target),
                                     " ", ToString(graph.sharding(output.target), graph.mesh())));
    } else if (output.kind == OutputKind::kReport && !sharding.Owed().empty()) {
      violations->AddAt(output.value, "sharded_c6",
                        absl::StrCat("is reported and owes: ", ToString(sharding, graph.mesh())));
    }
  }
}

}  // namespace

void CheckShardings(const Graph& graph, ViolationList* violations) {
  if (!CheckValues(graph, violations)) return;
  for (const Node& node : graph.nodes()) CheckNode(graph, node, violations);
  CheckEnds(graph, violations);
}

}  // namespace mgc
