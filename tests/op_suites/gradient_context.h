// Gradient rules of single nodes, for the suites that compare them with derivatives.

#ifndef MGC_TESTS_OP_SUITES_GRADIENT_CONTEXT_H_
#define MGC_TESTS_OP_SUITES_GRADIENT_CONTEXT_H_

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "graph/ir/op.h"
#include "tests/op_suites/small_graph.h"
#include "tests/op_suites/suite.h"

namespace mgc {

// Builds the gradient of one node beside it in a SmallGraph.
class TestGradContext : public GradContext {
 public:
  TestGradContext(SmallGraphBuilder* graph, const BoundCase& bound, std::vector<ValueId> inputs,
                  std::vector<ValueId> outputs, std::vector<ValueId> seeds, std::set<int> wanted)
      : graph_(graph),
        bound_(bound),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        seeds_(std::move(seeds)),
        wanted_(std::move(wanted)) {}

  const Attrs& attrs() const override { return bound_.op_case->attrs; }
  int num_inputs() const override { return static_cast<int>(inputs_.size()); }
  ValueId input(int i) const override { return inputs_[static_cast<size_t>(i)]; }
  ValueId output(int i) const override { return outputs_[static_cast<size_t>(i)]; }
  ValueId output_grad(int i) const override { return seeds_[static_cast<size_t>(i)]; }
  const TensorType& type(ValueId value) const override { return graph_->type(value); }
  bool wants(int i) const override { return wanted_.count(i) > 0; }
  std::vector<ValueId> EmitAll(absl::string_view op, std::vector<ValueId> inputs,
                               Attrs attrs) override {
    return graph_->EmitAll(op, std::move(inputs), std::move(attrs));
  }
  void Add(int i, ValueId gradient) override {
    EXPECT_TRUE(wants(i)) << "operand " << i;
    EXPECT_EQ(type(gradient).ToString(), type(input(i)).ToString()) << "operand " << i;
    auto [it, fresh] = gradients_.emplace(i, gradient);
    if (!fresh) it->second = graph_->Emit("add", {it->second, gradient});
  }

  const std::map<int, ValueId>& gradients() const { return gradients_; }

 private:
  SmallGraphBuilder* graph_;
  const BoundCase& bound_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::vector<ValueId> seeds_;
  std::set<int> wanted_;
  std::map<int, ValueId> gradients_;
};

// Real operands that gradients reach.
inline std::set<int> DifferentiableOperands(const BoundCase& bound) {
  const std::vector<int>& stopped = bound.op->stopped_operands;
  std::set<int> wanted;
  for (size_t i = 0; i < bound.operands.size(); ++i) {
    const int operand = static_cast<int>(i);
    if (bound.operands[i].type.dtype != DType::kI64 &&
        std::find(stopped.begin(), stopped.end(), operand) == stopped.end()) {
      wanted.insert(operand);
    }
  }
  return wanted;
}

inline size_t NumDifferentiableResults(const BoundCase& bound) {
  return bound.results.size() - static_cast<size_t>(bound.op->saved_results);
}

inline std::vector<BoundCase> DifferentiableCases() {
  return CasesWhere([](const BoundCase& c) {
    return static_cast<bool>(c.op->grad) && c.results[0].dtype != DType::kI64;
  });
}

// Builds the op of a case over `operands` and, for its results seeded with `seeds`, the gradients
// of the `wanted` operands by the op's rule: values of `graph`, by operand.
template <class M>
std::map<int, ValueId> GradientsByRule(const BoundCase& bound,
                                       const std::vector<HostTensor<typename M::Scalar>>& operands,
                                       const std::vector<HostTensor<typename M::Scalar>>& seeds,
                                       const std::set<int>& wanted, SmallGraphOf<M>* graph) {
  std::vector<ValueId> inputs;
  inputs.reserve(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    inputs.push_back(graph->AddInput(bound.operands[i].type, operands[i]));
  }
  const std::vector<ValueId> outputs = graph->EmitAll(bound.op->name, inputs, bound.op_case->attrs);
  std::vector<ValueId> seeded(outputs.size(), kNone);
  for (size_t r = 0; r < NumDifferentiableResults(bound); ++r) {
    seeded[r] = graph->AddInput(bound.results[r], seeds[r]);
  }
  TestGradContext context(graph, bound, inputs, outputs, seeded, wanted);
  const absl::Status status = bound.op->grad(context);
  EXPECT_TRUE(status.ok()) << status;
  return context.gradients();
}

}  // namespace mgc

#endif  // MGC_TESTS_OP_SUITES_GRADIENT_CONTEXT_H_
