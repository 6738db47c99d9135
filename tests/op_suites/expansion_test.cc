// Fused ops equal the small ops that they stand for, in every result: within rounding in doubles,
// exactly in residues.

#include "tests/op_suites/small_graph.h"
#include "tests/op_suites/suite.h"

namespace mgc {
namespace {

// Relative to the largest entry.
constexpr double kTolerance = 1e-14;
constexpr uint64_t kModelKey = 32;

using Values = std::vector<ValueId>;

// Says one use of an op in small ops, beside it in a graph.
class TestEmitContext : public EmitContext {
 public:
  TestEmitContext(SmallGraphBuilder* graph, const Attrs& attrs, const Values& inputs)
      : graph_(graph), attrs_(attrs), inputs_(inputs) {}

  const Attrs& attrs() const override { return attrs_; }
  int num_inputs() const override { return static_cast<int>(inputs_.size()); }
  ValueId input(int i) const override { return inputs_[static_cast<size_t>(i)]; }
  Values EmitAll(absl::string_view op, Values inputs, Attrs attrs) override {
    EXPECT_FALSE(FindOp(op)->expand) << op << " is no small op";
    return graph_->EmitAll(op, std::move(inputs), std::move(attrs));
  }

 private:
  SmallGraphBuilder* graph_;
  const Attrs& attrs_;
  const Values& inputs_;
};

class ExpansionTest : public testing::TestWithParam<BoundCase> {
 protected:
  // Emits the fused op and its expansion.
  template <class M>
  void Build(SmallGraphOf<M>& graph,
             const std::vector<typename SmallGraphOf<M>::Tensor>& operands) {
    const BoundCase& bound = GetParam();
    Values inputs;
    for (size_t i = 0; i < operands.size(); ++i) {
      inputs.push_back(graph.AddInput(bound.operands[i].type, operands[i]));
    }
    fused_ = graph.EmitAll(bound.op->name, inputs, bound.op_case->attrs);
    TestEmitContext context(&graph, bound.op_case->attrs, inputs);
    small_ = bound.op->expand(context);
    ASSERT_EQ(fused_.size(), small_.size());
    for (size_t r = 0; r < fused_.size(); ++r) {
      EXPECT_EQ(graph.type(fused_[r]), graph.type(small_[r])) << bound.op->results[r];
    }
  }

  std::mt19937_64 random_{kDrawSeed};
  Values fused_;
  Values small_;
};

TEST_P(ExpansionTest, EqualsItsSmallOps) {
  SmallGraph graph;
  Build(graph, DrawOperands(GetParam(), random_));
  for (size_t r = 0; r < fused_.size(); ++r) {
    ExpectClose(graph.value(fused_[r]).real, graph.value(small_[r]).real, kTolerance,
                GetParam().op->results[r]);
  }
}

TEST_P(ExpansionTest, EqualsItsSmallOpsExactly) {
  SmallGraphOf<ResidueModel> graph{ResidueModel(kModelKey)};
  Build(graph, DrawResidues(GetParam(), random_));
  for (size_t r = 0; r < fused_.size(); ++r) {
    EXPECT_TRUE(graph.value(fused_[r]).real == graph.value(small_[r]).real)
        << GetParam().op->results[r];
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, ExpansionTest, testing::ValuesIn(CasesWhere([](const BoundCase& c) {
                           return static_cast<bool>(c.op->expand);
                         })),
                         CaseName);

// Ops that read no more of some operands than their type.
class TypeOperandTest : public testing::TestWithParam<BoundCase> {};

TEST_P(TypeOperandTest, ElementsAreNotRead) {
  std::mt19937_64 random{kDrawSeed};
  std::vector<HostTensor<double>> operands = DrawOperands(GetParam(), random);
  const auto results = [&] {
    SmallGraph graph;
    Values inputs;
    for (size_t i = 0; i < operands.size(); ++i) {
      inputs.push_back(graph.AddInput(GetParam().operands[i].type, operands[i]));
    }
    std::vector<std::vector<double>> values;
    for (ValueId id : graph.EmitAll(GetParam().op->name, inputs, GetParam().op_case->attrs)) {
      values.push_back(graph.value(id).real);
    }
    return values;
  };
  const auto before = results();
  for (int i : GetParam().op->type_operands) {
    for (double& element : operands[static_cast<size_t>(i)].real) element += 1;
  }
  EXPECT_EQ(results(), before);
}

INSTANTIATE_TEST_SUITE_P(Ops, TypeOperandTest, testing::ValuesIn(CasesWhere([](const BoundCase& c) {
                           return !c.op->type_operands.empty();
                         })),
                         CaseName);

}  // namespace
}  // namespace mgc
