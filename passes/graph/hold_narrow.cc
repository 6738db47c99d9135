#include "passes/graph/hold_narrow.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/ir/results.h"
#include "passes/graph/rewrite.h"

namespace mgc {
namespace {

size_t Index(ValueId id) { return static_cast<size_t>(id); }

bool IsCast(const Node& node) { return node.op->Has(OpRole::kCast); }

// A lookup of a table, operand 0: the rows that it gives have the table's type.
bool IsLookup(const Node& node) { return node.op->precision == Precision::kNarrowResult; }

class Holding {
 public:
  explicit Holding(const Graph& step)
      : step_(step), readers_(step.values().size()), is_left_(step.values().size(), false) {
    for (const Node& node : step.nodes()) {
      for (ValueId id : node.inputs) readers_[Index(id)].push_back(&node);
    }
    for (const GraphOutput& output : step.outputs()) is_left_[Index(output.value)] = true;
    for (const GraphInput& input : step.inputs()) {
      absl::optional<DType> type;
      if (input.kind == InputKind::kParam) type = TypeReadIn(input.value);
      if (IsKeptState(step, input)) type = TypeOfKept(input.value);
      if (type.has_value()) held_.emplace(input.value, *type);
    }
  }

  Graph Run() {
    Rewriter made(step_, step_.level(), Rewriter::Inputs::kNone);
    for (const GraphInput& input : step_.inputs()) {
      const Value& value = step_.value(input.value);
      TensorType type = value.type;
      if (const auto held = held_.find(input.value); held != held_.end()) {
        type.dtype = held->second;
      }
      made.Map(input.value,
               made.builder().AddInput(value.name, type, input.kind, input.attrs, value.sharding));
    }
    for (const Node& node : step_.nodes()) AddNode(node, &made);
    return std::move(made).Finish();
  }

  bool HoldsAny() const { return !held_.empty(); }

 private:
  // The one narrow type that all nodes want a value in; none where one takes it as it is.
  absl::optional<DType> TypeCastTo(ValueId value) const {
    absl::optional<DType> type;
    for (const Node* reader : readers_[Index(value)]) {
      if (!IsCast(*reader)) return {};
      const DType to = step_.type(reader->outputs[0]).dtype;
      if (!IsNarrow(to) || (type.has_value() && *type != to)) return {};
      type = to;
    }
    return type;
  }

  // The same of a parameter, whose rows may be looked up before they are cast.
  absl::optional<DType> TypeReadIn(ValueId param) const {
    absl::optional<DType> type;
    if (is_left_[Index(param)]) return {};
    for (const Node* reader : readers_[Index(param)]) {
      const bool looks_up = IsLookup(*reader) && !is_left_[Index(reader->outputs[0])];
      if (!looks_up && !IsCast(*reader)) return {};
      const absl::optional<DType> to =
          looks_up ? TypeCastTo(reader->outputs[0]) : step_.type(reader->outputs[0]).dtype;
      if (!to.has_value() || !IsNarrow(*to) || (type.has_value() && *type != *to)) return {};
      type = to;
    }
    return type;
  }

  // What a cast widens; kNone of any other value.
  ValueId Widened(ValueId value) const {
    const NodeId maker = step_.value(value).producer;
    if (maker == kNone || !IsCast(step_.node(maker))) return kNone;
    const ValueId narrow = step_.node(maker).inputs[0];
    return IsNarrow(step_.type(narrow).dtype) ? narrow : kNone;
  }

  // Of a tensor that is left for the next step: that of all that is written into it, if no node
  // reads what comes out in another. A step that begins with a prompt reads nothing of it.
  absl::optional<DType> TypeOfKept(ValueId kept) const {
    if (readers_[Index(kept)].size() != 1) return {};
    const Node& writer = *readers_[Index(kept)][0];
    absl::optional<DType> type;
    for (size_t i = 1; i < writer.inputs.size(); ++i) {
      if (step_.type(writer.inputs[i]).dtype != step_.type(kept).dtype) continue;
      const ValueId narrow = Widened(writer.inputs[i]);
      if (narrow == kNone) return {};
      const DType from = step_.type(narrow).dtype;
      if (type.has_value() && *type != from) return {};
      type = from;
    }
    const bool is_read = !readers_[Index(writer.outputs[0])].empty();
    return is_read && TypeCastTo(writer.outputs[0]) != type ? absl::nullopt : type;
  }

  void AddNode(const Node& node, Rewriter* made) {
    const ValueId operand = node.inputs.empty() ? kNone : made->Mapped(node.inputs[0]);
    const bool is_held = operand != kNone && made->builder().graph().type(operand).dtype !=
                                                 step_.type(node.inputs[0]).dtype;
    if (!is_held) {
      made->Copy(node);
    } else if (IsCast(node)) {
      made->Map(node.outputs[0], operand);
    } else {
      AddReader(node, made);
    }
  }

  // A lookup in what is held, or what writes into it: the result has its type.
  void AddReader(const Node& node, Rewriter* made) {
    const Graph& graph = made->builder().graph();
    Node copy = node;
    for (ValueId& id : copy.inputs) {
      const ValueId narrow = Widened(id);
      id = made->Mapped(narrow == kNone ? id : narrow);
    }
    Value result = step_.value(node.outputs[0]);
    result.type.dtype = graph.type(copy.inputs[0]).dtype;
    const NodeId reader = made->builder().AppendRaw(std::move(copy), {std::move(result)});
    made->Map(node.outputs[0], graph.node(reader).outputs[0]);
  }

  const Graph& step_;
  std::vector<std::vector<const Node*>> readers_;  // by value
  std::vector<bool> is_left_;                      // by value: an output
  std::map<ValueId, DType> held_;
};

}  // namespace

Graph HoldNarrow(const Graph& step) {
  if (!IsAsked(step)) return step;
  Holding holding(step);
  return holding.HoldsAny() ? DropDeadNodes(holding.Run()) : step;
}

}  // namespace mgc
