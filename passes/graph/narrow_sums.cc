#include "passes/graph/narrow_sums.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/ir/collective.h"
#include "graph/ir/op.h"
#include "passes/graph/rewrite.h"

namespace mgc {
namespace {

// Sums of the update that are of f32 are gradients: losses, norms and counts are f64. In backward
// those that become pieces are.
bool IsGradientSum(const Graph& graph, const Node& node) {
  if (!node.op->collective) return false;
  const bool makes_pieces = !graph.sharding(node.outputs[0]).storage.empty();
  return (node.phase == Phase::kUpdate || (node.phase == Phase::kBackward && makes_pieces)) &&
         graph.type(node.outputs[0]).dtype == DType::kF32 &&
         PaysOverData(CollectiveOf(graph, node), graph.mesh());
}

class SumNarrowing {
 public:
  SumNarrowing(const Graph& local, DType type)
      : local_(local), type_(type), made_(local, local.level()) {}

  Graph Run() {
    for (const Node& node : local_.nodes()) {
      if (IsGradientSum(local_, node)) {
        AddSum(node);
      } else {
        made_.Copy(node);
      }
    }
    return std::move(made_).Finish();
  }

 private:
  void AddSum(const Node& node) {
    Node sum = node;
    sum.inputs = {Cast(made_.Mapped(node.inputs[0]), type_, node,
                       NarrowName(local_.value(node.inputs[0]).name))};
    const Value& result = local_.value(node.outputs[0]);
    Value narrow = result;
    narrow.name = NarrowName(result.name);
    narrow.type.dtype = type_;
    narrow.primal = kNone;
    const NodeId made = made_.builder().AppendRaw(std::move(sum), {std::move(narrow)});
    const ValueId wide =
        Cast(made_.builder().graph().node(made).outputs[0], result.type.dtype, node, result.name);
    if (result.primal != kNone) made_.builder().SetPrimal(wide, made_.Mapped(result.primal));
    made_.Map(node.outputs[0], wide);
  }

  std::string NarrowName(const std::string& name) const {
    return absl::StrCat(name, ".", NameOf(type_));
  }

  // In the sharding of the operand.
  ValueId Cast(ValueId value, DType dtype, Node like, const std::string& name) {
    like.origin = "cast for a sum over data";
    const Sharding sharding = made_.builder().graph().sharding(value);
    const ValueId cast = made_.builder().Emit(
        "cast", {value}, {{kDTypeAttr, std::string(NameOf(dtype))}}, like, name);
    made_.builder().SetSharding(cast, sharding);
    return cast;
  }

  const Graph& local_;
  const DType type_;
  Rewriter made_;
};

}  // namespace

Graph NarrowSums(const Graph& local, DType type) {
  return type == DType::kF32 ? local : SumNarrowing(local, type).Run();
}

}  // namespace mgc
