#include "tests/op_suites/small_graph.h"

#include <utility>

#include "graph/base/status.h"

namespace mgc {

std::vector<ValueId> SmallGraphBuilder::EmitAll(absl::string_view op, std::vector<ValueId> inputs,
                                                Attrs attrs) {
  absl::StatusOr<std::vector<ValueId>> made =
      builder_.Append(op, std::move(inputs), std::move(attrs), Node(), {std::string(op)});
  MGC_CHECK(made.ok()) << made.status().ToString();
  std::vector<TensorType> results;
  for (ValueId id : *made) results.push_back(type(id));
  Evaluate(builder_.graph().nodes().back(), results);
  return *made;
}

template <class M>
ValueId SmallGraphOf<M>::AddInput(const TensorType& type, Tensor value) {
  values_.push_back(std::move(value));
  return builder_.AddInput("x", type, InputKind::kParam);
}

template <class M>
void SmallGraphOf<M>::Evaluate(const Node& node, const std::vector<TensorType>& results) {
  std::vector<const Tensor*> operands;
  for (ValueId id : node.inputs) operands.push_back(&value(id));
  for (Tensor& result : EvaluateWhole(model_, *node.op, node.attrs, RuleOf(builder_.graph(), node),
                                      results, operands, kDropoutSeed)) {
    values_.push_back(std::move(result));
  }
}

template class SmallGraphOf<DoubleModel>;
template class SmallGraphOf<ResidueModel>;

}  // namespace mgc
