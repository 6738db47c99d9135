#include "passes/graph/narrow.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/ir/results.h"
#include "passes/graph/rewrite.h"

namespace mgc {
namespace {

size_t Index(ValueId id) { return static_cast<size_t>(id); }

// Values that are read in f32 only: by what is wide, by what follows its operands there, by
// outputs.
class WantedWide {
 public:
  explicit WantedWide(const Graph& step) : wanted_(step.values().size(), true) {
    std::vector<bool> is_read(step.values().size(), false);
    for (size_t n = step.nodes().size(); n-- > 0;) {
      const Node& node = step.nodes()[n];
      const bool all_wide = IsWide(node);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const size_t v = Index(node.inputs[i]);
        is_read[v] = true;
        if (!all_wide && !IsWideOperand(*node.op, i)) wanted_[v] = false;
      }
    }
    for (const GraphOutput& output : step.outputs()) is_read[Index(output.value)] = true;
    for (size_t v = 0; v < wanted_.size(); ++v) wanted_[v] = wanted_[v] && is_read[v];
  }

  bool Of(ValueId value) const { return wanted_[Index(value)]; }
  bool OfAll(const std::vector<ValueId>& values) const {
    return std::all_of(values.begin(), values.end(), [&](ValueId id) { return Of(id); });
  }
  // Whether a node that follows its operands has to follow them in f32: what it makes of their type
  // is wanted so, and cannot be asked for.
  bool PullsUp(const Node& node) const {
    bool any = false;
    for (size_t r = 0; r < node.outputs.size(); ++r) {
      if (IsWideResult(*node.op, r)) continue;
      if (!Of(node.outputs[r])) return false;
      any = true;
    }
    return any && !MayAskForWide(*node.op);
  }

 private:
  // Whether a node reads all that is real in f32.
  bool IsWide(const Node& node) const {
    if (node.phase == Phase::kUpdate) return true;
    switch (node.op->precision) {
      case Precision::kWide:
      case Precision::kNarrowResult:
        return true;
      case Precision::kNarrow:
        return false;
      case Precision::kFollows:
        return PullsUp(node);
    }
    return true;
  }

  std::vector<bool> wanted_;  // by value
};

class Narrowing {
 public:
  Narrowing(const Graph& step, DType type)
      : step_(step),
        type_(type),
        wanted_wide_(step),
        made_(step, step.level()),
        is_free_(step.values().size(), false) {}

  Graph Run() {
    for (const GraphInput& input : step_.inputs()) {
      is_free_[Index(input.value)] = !IsKeptState(step_, input);
    }
    for (const Node& node : step_.nodes()) AddNode(node);
    for (const GraphOutput& output : step_.outputs()) KeepType(output.value);
    return std::move(made_).Finish();
  }

 private:
  DType TypeOf(ValueId made) const { return made_.builder().graph().type(made).dtype; }

  // Whether operand `i`, by its new type, is one that the op's shared type speaks of.
  bool IsShared(const Node& node, size_t i) const {
    const DType dtype = TypeOf(made_.Mapped(node.inputs[i]));
    return (dtype == DType::kF32 || dtype == type_) && !IsWideOperand(*node.op, i);
  }

  bool IsNarrow(const Node& node) const {
    if (node.phase == Phase::kUpdate) return false;
    if (node.op->precision != Precision::kFollows) {
      return node.op->precision == Precision::kNarrow;
    }
    if (wanted_wide_.PullsUp(node)) return false;
    bool any = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!IsShared(node, i)) continue;
      const bool is_narrow = TypeOf(made_.Mapped(node.inputs[i])) == type_;
      if (!is_narrow && !is_free_[Index(node.inputs[i])]) return false;
      any = any || is_narrow;
    }
    return any;
  }

  void AddNode(const Node& node) {
    const bool is_narrow = IsNarrow(node);
    Node copy = node;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      ValueId& input = copy.inputs[i];
      input = made_.Mapped(input);
      const DType dtype = TypeOf(input);
      if (dtype != DType::kF32 && dtype != type_) continue;  // scalars and indices
      const bool reads_narrow = is_narrow && !IsWideOperand(*node.op, i);
      input = Cast(input, reads_narrow ? type_ : DType::kF32, node);
    }
    if (is_narrow && MayAskForWide(*node.op) && wanted_wide_.OfAll(node.outputs)) {
      copy.attrs.Set(kDTypeAttr, std::string(NameOf(DType::kF32)));
    }
    AddResults(node, std::move(copy));
    if (node.op->precision == Precision::kNarrowResult && node.phase != Phase::kUpdate) {
      for (ValueId id : node.outputs) {
        if (!wanted_wide_.Of(id)) made_.Map(id, Cast(made_.Mapped(id), type_, node));
      }
    }
    MarkFree(node, is_narrow);
  }

  // Appends the copy; its results have the types that its operands now give them.
  void AddResults(const Node& node, Node copy) {
    std::vector<const TensorType*> operands;
    for (ValueId id : copy.inputs) operands.push_back(&made_.builder().graph().type(id));
    const absl::StatusOr<std::vector<TensorType>> types =
        InferTypes(*copy.op, copy.attrs, operands);
    MGC_CHECK(types.ok()) << types.status().ToString();
    std::vector<Value> results;
    for (size_t r = 0; r < node.outputs.size(); ++r) {
      results.push_back(step_.value(node.outputs[r]));
      results.back().type.dtype = (*types)[r].dtype;
      results.back().primal = kNone;
    }
    const NodeId made = made_.builder().AppendRaw(std::move(copy), std::move(results));
    for (size_t r = 0; r < node.outputs.size(); ++r) {
      const ValueId result = made_.builder().graph().node(made).outputs[r];
      made_.Map(node.outputs[r], AsItsPrimal(node, node.outputs[r], result));
    }
  }

  // A gradient has the type of what it is the gradient of.
  ValueId AsItsPrimal(const Node& node, ValueId old, ValueId made) {
    const ValueId primal = step_.value(old).primal;
    if (primal == kNone) return made;
    const ValueId like = made_.Mapped(primal);
    const ValueId gradient = Cast(made, TypeOf(like), node);
    made_.builder().SetPrimal(gradient, like);
    return gradient;
  }

  // Values that follow from inputs and constants alone may be rounded where they meet narrow ones;
  // what was brought to f32 on purpose may not. What is left for the next step stays in f32, and is
  // rounded where it is read beside narrow values, as it was before it was written.
  void MarkFree(const Node& node, bool is_narrow) {
    const auto is_free = [&](ValueId id) { return is_free_[Index(id)]; };
    const bool follows = !is_narrow && std::all_of(node.inputs.begin(), node.inputs.end(), is_free);
    const bool is_left = !node.inputs.empty() && IsKept(node.inputs[0]);
    for (ValueId id : node.outputs) is_free_[Index(id)] = follows || is_left;
  }

  // A value of f32 or the narrow type in one of the two, made once for each phase and layer. A
  // parameter does not change within a step: its working copy is made when the step begins.
  ValueId Cast(ValueId value, DType dtype, const Node& reader) {
    const Graph& graph = made_.builder().graph();
    if (graph.type(value).dtype == dtype) return value;
    Node like = reader;
    if (IsParam(value)) like.phase = Phase::kPrepare;
    const NodeId producer = graph.value(value).producer;
    if (producer != kNone && graph.node(producer).op->Has(OpRole::kCast) &&
        TypeOf(graph.node(producer).inputs[0]) == dtype && dtype == type_) {
      return graph.node(producer).inputs[0];
    }
    const auto [known, is_new] =
        casts_.try_emplace(std::make_tuple(value, dtype, like.phase, like.layer), kNone);
    if (is_new) {
      like.origin = absl::StrCat("cast for ", reader.op->name);
      known->second =
          made_.builder().Emit("cast", {value}, {{kDTypeAttr, std::string(NameOf(dtype))}}, like,
                               absl::StrCat(graph.value(value).name, ".", NameOf(dtype)));
    }
    return known->second;
  }

  bool IsKept(ValueId old) const {
    const GraphInput* input = step_.FindInput(old);
    return input != nullptr && IsKeptState(step_, *input);
  }

  bool IsParam(ValueId made) const {
    const GraphInput* input = made_.builder().graph().FindInput(made);
    return input != nullptr && input->kind == InputKind::kParam;
  }

  void KeepType(ValueId output) {
    const ValueId made = made_.Mapped(output);
    if (TypeOf(made) == step_.type(output).dtype) return;
    const Graph& graph = made_.builder().graph();
    const Node producer = graph.node(graph.value(made).producer);
    made_.Map(output, Cast(made, step_.type(output).dtype, producer));
  }

  const Graph& step_;
  const DType type_;
  const WantedWide wanted_wide_;
  Rewriter made_;
  std::vector<bool> is_free_;  // by old value
  std::map<std::tuple<ValueId, DType, Phase, int>, ValueId> casts_;
};

}  // namespace

Graph Narrow(const Graph& step, DType type) {
  return type == DType::kF32 ? step : Narrowing(step, type).Run();
}

}  // namespace mgc
