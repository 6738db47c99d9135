#include "passes/graph/shard/sharded_graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/ir/op.h"
#include "graph/ir/step_names.h"

namespace mgc {
namespace {

// By node of the update, what reports call the changes of sharding it asks for. Resharding nodes
// say so; what an operand of another node needs goes by the reshard that its results lead to.
std::vector<std::string> LabelsInUpdate(const Graph& training) {
  const std::vector<std::vector<NodeId>> users = training.Users();
  std::vector<std::string> labels(training.nodes().size());
  for (size_t n = labels.size(); n-- > 0;) {
    const Node& node = training.nodes()[n];
    if (node.phase != Phase::kUpdate) continue;
    labels[n] = node.op->Has(OpRole::kReshard) ? node.attrs.Text(kLabelAttr) : "";
    for (ValueId id : node.outputs) {
      for (NodeId user : users[static_cast<size_t>(id)]) {
        if (labels[n].empty()) labels[n] = labels[static_cast<size_t>(user)];
      }
    }
  }
  return labels;
}

// Whether a value's producer sums one of its operands, or takes its maximum, over a dim: no
// product.
bool IsReduced(const Graph& graph, ValueId value) {
  const NodeId producer = graph.value(value).producer;
  if (producer == kNone) return false;
  const FactorRule rule = RuleOf(graph, graph.node(producer));
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    const auto has = [f](const TensorFactors& tensor) {
      return std::any_of(tensor.begin(), tensor.end(), [f](const DimFactors& dim) {
        return std::find(dim.begin(), dim.end(), static_cast<int>(f)) != dim.end();
      });
    };
    const bool made = std::any_of(rule.results.begin(), rule.results.end(), has);
    if (!made && std::count_if(rule.operands.begin(), rule.operands.end(), has) == 1) return true;
  }
  return false;
}

}  // namespace

Sharding Paid(Sharding sharding, AxisSet axes) {
  sharding.sum -= axes;
  sharding.max -= axes;
  return sharding;
}

ShardedGraph::ShardedGraph(const Graph& training, const Mesh& mesh)
    : source_(training), labels_(LabelsInUpdate(training)), rewriter_(training, Level::kSharded) {
  rewriter_.builder().set_mesh(mesh);
}

void ShardedGraph::SetHome(ValueId old, Sharding sharding) {
  rewriter_.builder().SetSharding(rewriter_.Mapped(old), std::move(sharding));
}

void ShardedGraph::MapToCopy(ValueId old, Phase phase, const Node& reader) {
  Node place = reader;
  place.phase = phase;
  place.origin = absl::StrCat("copy of ", source_.value(old).name);
  Sharding whole = Home(old);
  whole.storage = AxisList();
  rewriter_.Map(old, Convert(Mapped(old), whole, place));
}

ValueId ShardedGraph::Convert(ValueId value, const Sharding& target, const Node& place) {
  const Graph& graph = rewriter_.builder().graph();
  if (graph.sharding(value) == target) return value;
  std::vector<Conversion>& known = conversions_[value];
  for (const Conversion& c : known) {
    if (c.phase == place.phase && c.layer == place.layer && graph.sharding(c.value) == target) {
      return c.value;
    }
  }
  const ValueId made = Reshard(value, target, place, absl::StrCat(graph.value(value).name, ".to"));
  known.push_back({place.phase, place.layer, made});
  return made;
}

std::vector<ValueId> ShardedGraph::ConvertTerms(const std::vector<ValueId>& terms,
                                                const Sharding& sum, const Node& place) {
  std::vector<ValueId> converted;
  for (ValueId id : terms) {
    Sharding wanted = sum;
    const int lacks = static_cast<int>(sum.dims.size()) - source_.type(id).ndim();
    wanted.dims.erase(wanted.dims.begin(), wanted.dims.begin() + lacks);
    converted.push_back(Convert(Mapped(id), wanted, place));
  }
  return converted;
}

void ShardedGraph::Resolve(ValueId old, ValueId value, const Sharding& target, const Node& place) {
  const ValueId made = Reshard(value, target, place, source_.value(old).name);
  if (const ValueId primal = source_.value(old).primal; primal != kNone) {
    rewriter_.builder().SetPrimal(made, rewriter_.Mapped(primal));
  }
  rewriter_.Map(old, made);
}

ValueId ShardedGraph::Append(Node made, ValueId old, const Sharding& sharding,
                             const std::string& name) {
  const NodeId node =
      rewriter_.builder().AppendRaw(std::move(made), {NewValue(old, sharding, name)});
  const ValueId id = rewriter_.builder().graph().node(node).outputs[0];
  rewriter_.Map(old, id);
  return id;
}

void ShardedGraph::Emit(Node made, const Node& old, const std::vector<Sharding>& produced,
                        const std::vector<Sharding>& targets) {
  std::vector<Value> results;
  for (size_t r = 0; r < produced.size(); ++r) {
    results.push_back(NewValue(old.outputs[r], produced[r], source_.value(old.outputs[r]).name));
    if (targets[r] != produced[r]) results.back().name += ".part";
  }
  const NodeId node = rewriter_.builder().AppendRaw(std::move(made), std::move(results));
  for (size_t r = 0; r < produced.size(); ++r) {
    const ValueId raw = rewriter_.builder().graph().node(node).outputs[r];
    if (targets[r] == produced[r]) {
      rewriter_.Map(old.outputs[r], raw);
    } else {
      Resolve(old.outputs[r], raw, targets[r], old);
    }
  }
}

Value ShardedGraph::NewValue(ValueId old, const Sharding& sharding, const std::string& name) const {
  Value value{name, source_.type(old), sharding, kNone, source_.value(old).primal};
  if (value.primal != kNone) value.primal = rewriter_.Mapped(value.primal);
  return value;
}

ValueId ShardedGraph::Reshard(ValueId value, const Sharding& target, const Node& place,
                              const std::string& name) {
  const Graph& graph = rewriter_.builder().graph();
  Node reshard = place;
  reshard.op = FindOp("reshard");
  reshard.attrs = {};
  if (const std::string label = LabelOf(value, target, place); !label.empty()) {
    reshard.attrs.Set(kLabelAttr, label);
  }
  reshard.inputs = {value};
  Value result{name, graph.type(value), target, kNone, graph.value(value).primal};
  const NodeId node = rewriter_.builder().AppendRaw(std::move(reshard), {std::move(result)});
  return rewriter_.builder().graph().node(node).outputs[0];
}

std::string ShardedGraph::LabelOf(ValueId value, const Sharding& target, const Node& place) const {
  if (place.phase == Phase::kUpdate) {
    return labels_[static_cast<size_t>(source_.value(place.outputs[0]).producer)];
  }
  const Graph& graph = rewriter_.builder().graph();
  const Value& changed = graph.value(value);
  if (place.phase == Phase::kPrepare || !changed.sharding->storage.empty()) return "parameter";
  if (!target.storage.empty()) return "gradient";
  const AxisSet before = changed.sharding->UsedAxes();
  const AxisSet after = target.UsedAxes();
  const AxisSet paid = changed.sharding->Owed() - target.Owed();
  const AxisSet moved = (before - after) | (after - before) | paid;
  const AxisSet context = graph.mesh().Find("cp").AsSet();
  if (!moved.empty() && context.ContainsAll(moved)) return "context";
  const bool owed = !changed.sharding->Owed().empty();
  if (owed && changed.type.ndim() == 0) return "loss";
  if (owed && changed.type.ndim() < 3 && IsReduced(graph, value)) return "vocabulary";
  if (place.phase == Phase::kForward) return owed ? "g" : "f";
  return changed.primal != kNone && !owed ? "g" : "f";
}

}  // namespace mgc
