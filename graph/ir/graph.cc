#include "graph/ir/graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"

namespace mgc {

absl::string_view NameOf(Level level) {
  constexpr absl::string_view kNames[] = {"logical", "training", "sharded", "local"};
  return kNames[static_cast<int>(level)];
}

absl::string_view NameOf(Phase phase) {
  constexpr absl::string_view kNames[kNumPhases] = {"prepare", "forward", "backward", "update"};
  return kNames[static_cast<int>(phase)];
}

absl::string_view NameOf(InputKind kind) {
  constexpr absl::string_view kNames[] = {"param", "state", "accumulator", "data", "scalar"};
  return kNames[static_cast<int>(kind)];
}

absl::string_view NameOf(OutputKind kind) {
  constexpr absl::string_view kNames[] = {"loss", "assign", "report"};
  return kNames[static_cast<int>(kind)];
}

std::vector<int64_t> Graph::local_shape(ValueId id) const {
  const Value& v = value(id);
  return LocalShape(v.type, v.sharding ? *v.sharding : Sharding::Whole(v.type.ndim()), mesh_);
}

ValueId Graph::FindValue(absl::string_view name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? kNone : it->second;
}

const GraphInput* Graph::FindInput(ValueId id) const {
  const auto it =
      std::lower_bound(inputs_.begin(), inputs_.end(), id,
                       [](const GraphInput& input, ValueId of) { return input.value < of; });
  return it == inputs_.end() || it->value != id ? nullptr : &*it;
}

std::string Graph::LocText(const SourceLoc& loc) const {
  if (loc.file == kNone) return "";
  return absl::StrCat(files_[static_cast<size_t>(loc.file)], ":", loc.line, ":", loc.column);
}

std::vector<std::vector<NodeId>> Graph::Users() const {
  std::vector<std::vector<NodeId>> users(values_.size());
  for (size_t n = 0; n < nodes_.size(); ++n) {
    for (ValueId id : nodes_[n].inputs) {
      users[static_cast<size_t>(id)].push_back(static_cast<NodeId>(n));
    }
  }
  return users;
}

GraphBuilder::GraphBuilder(absl::string_view name, Level level) {
  graph_.name_ = std::string(name);
  graph_.level_ = level;
}

int32_t GraphBuilder::AddFile(absl::string_view path) {
  for (size_t i = 0; i < graph_.files_.size(); ++i) {
    if (graph_.files_[i] == path) return static_cast<int32_t>(i);
  }
  graph_.files_.emplace_back(path);
  return static_cast<int32_t>(graph_.files_.size()) - 1;
}

std::string GraphBuilder::UniqueName(absl::string_view wanted) const {
  std::string name(wanted);
  for (int i = 2; graph_.by_name_.contains(name); ++i) name = absl::StrCat(wanted, ".", i);
  return name;
}

ValueId GraphBuilder::AddValue(Value value) {
  value.name = UniqueName(value.name);
  const ValueId id = static_cast<ValueId>(graph_.values_.size());
  graph_.by_name_.emplace(value.name, id);
  graph_.values_.push_back(std::move(value));
  return id;
}

ValueId GraphBuilder::AddInput(absl::string_view name, TensorType type, InputKind kind, Attrs attrs,
                               absl::optional<Sharding> sharding) {
  const ValueId id = AddValue({std::string(name), std::move(type), std::move(sharding), kNone});
  graph_.inputs_.push_back({id, kind, std::move(attrs)});
  return id;
}

// The node among `nodes` of one op that has such operands and attributes; kNone where none has.
NodeId GraphBuilder::UsedLike(const std::vector<NodeId>& nodes, absl::Span<const ValueId> inputs,
                              const Attrs& attrs) const {
  const auto alike = [&](ValueId a, ValueId b) { return graph_.type(a) == graph_.type(b); };
  for (const NodeId id : nodes) {
    const Node& node = graph_.node(id);
    if (node.attrs == attrs &&
        std::equal(node.inputs.begin(), node.inputs.end(), inputs.begin(), inputs.end(), alike)) {
      return id;
    }
  }
  return kNone;
}

absl::StatusOr<std::vector<TensorType>> GraphBuilder::TypesOf(const OpDef& op,
                                                              absl::Span<const ValueId> inputs,
                                                              const Attrs& attrs) const {
  std::vector<const TensorType*> operands;
  operands.reserve(inputs.size());
  for (ValueId id : inputs) operands.push_back(&graph_.type(id));
  return InferTypes(op, attrs, operands);
}

absl::StatusOr<std::vector<ValueId>> GraphBuilder::Append(absl::string_view op,
                                                          std::vector<ValueId> inputs, Attrs attrs,
                                                          const Node& like,
                                                          absl::Span<const std::string> names) {
  const OpDef* def = FindOp(op);
  if (def == nullptr) return absl::InvalidArgumentError(absl::StrCat("unknown op `", op, "`"));
  std::vector<NodeId>& uses = uses_[def];
  const NodeId known = UsedLike(uses, inputs, attrs);
  std::vector<TensorType> types;
  if (known == kNone) {
    MGC_ASSIGN_OR_RETURN(types, TypesOf(*def, inputs, attrs));
  } else {
    for (ValueId output : graph_.node(known).outputs) types.push_back(graph_.type(output));
  }
  Node node = like;
  node.op = def;
  node.attrs = std::move(attrs);
  node.inputs = std::move(inputs);
  std::vector<Value> results;
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string name =
        i < names.size() ? names[i] : absl::StrCat(names[0], ".", def->results[i]);
    results.push_back({name, std::move(types[i]), absl::nullopt, kNone});
  }
  const NodeId id = AppendRaw(std::move(node), std::move(results));
  if (known == kNone) uses.push_back(id);
  if (uses.size() > kUsesOfOp) uses.erase(uses.begin());
  return graph_.node(id).outputs;
}

ValueId GraphBuilder::Emit(absl::string_view op, std::vector<ValueId> inputs, Attrs attrs,
                           const Node& like, absl::string_view name) {
  absl::StatusOr<std::vector<ValueId>> made =
      Append(op, std::move(inputs), std::move(attrs), like, {std::string(name)});
  MGC_CHECK(made.ok()) << made.status().ToString();
  return (*made)[0];
}

NodeId GraphBuilder::AppendRaw(Node node, std::vector<Value> results) {
  const NodeId id = static_cast<NodeId>(graph_.nodes_.size());
  node.outputs.clear();
  for (Value& result : results) {
    result.producer = id;
    node.outputs.push_back(AddValue(std::move(result)));
  }
  graph_.nodes_.push_back(std::move(node));
  return id;
}

void GraphBuilder::SetSharding(ValueId id, Sharding sharding) {
  graph_.values_[static_cast<size_t>(id)].sharding = std::move(sharding);
}

}  // namespace mgc
