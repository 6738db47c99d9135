// Fused ops equal the small ops that they stand for, in every result: within rounding in doubles,
// exactly in residues.

#include <functional>
#include <map>

#include "tests/op_suites/small_graph.h"
#include "tests/op_suites/suite.h"

namespace mgc {
namespace {

// Relative to the largest entry.
constexpr double kTolerance = 1e-14;
constexpr uint64_t kModelKey = 32;

using Values = std::vector<ValueId>;
using Expansion = std::function<Values(SmallGraphBuilder&, const Values&, const Attrs&)>;

const std::map<std::string, Expansion>& Expansions() {
  static const auto* const expansions = new std::map<std::string, Expansion>{
      {"swiglu",
       [](SmallGraphBuilder& g, const Values& x, const Attrs&) -> Values {
         return {g.Emit("mul", {g.Emit("silu", {x[0]}), x[1]})};
       }},
      {"swiglu_grad",
       [](SmallGraphBuilder& g, const Values& x, const Attrs&) -> Values {
         const ValueId dgate = g.Emit("silu_grad", {g.Emit("mul", {x[0], x[2]}), x[1]});
         return {dgate, g.Emit("mul", {x[0], g.Emit("silu", {x[1]})})};
       }},
      {"bias_gelu",
       [](SmallGraphBuilder& g, const Values& x, const Attrs&) -> Values {
         return {g.Emit("gelu", {g.Emit("add", {x[0], x[1]})})};
       }},
      {"bias_gelu_grad",
       [](SmallGraphBuilder& g, const Values& x, const Attrs&) -> Values {
         return {g.Emit("gelu_grad", {x[0], g.Emit("add", {x[1], x[2]})})};
       }},
      {"matmul_accumulate",
       [](SmallGraphBuilder& g, const Values& x, const Attrs& attrs) -> Values {
         return {g.Emit("accumulate", {x[0], g.Emit("matmul", {x[1], x[2]}, attrs)})};
       }},
      {"lookup_grad_accumulate",
       [](SmallGraphBuilder& g, const Values& x, const Attrs&) -> Values {
         // Of the table only the type counts.
         return {g.Emit("accumulate", {x[0], g.Emit("lookup_grad", {x[0], x[1], x[2]})})};
       }},
      {"cross_entropy_grad",
       [](SmallGraphBuilder& g, const Values& x, const Attrs&) -> Values {
         const ValueId from_sum = g.Emit("exp_sum_grad", {x[0], x[1], x[2]});
         return {g.Emit("add", {from_sum, g.Emit("pick_grad", {x[0], x[3], x[4]})})};
       }},
  };
  return *expansions;
}

class ExpansionTest : public testing::TestWithParam<BoundCase> {
 protected:
  // Emits the fused op and its expansion.
  template <class M>
  void Build(SmallGraphOf<M>& graph,
             const std::vector<typename SmallGraphOf<M>::Tensor>& operands) {
    const BoundCase& bound = GetParam();
    const auto expansion = Expansions().find(bound.op->name);
    ASSERT_NE(expansion, Expansions().end()) << "no expansion is listed here";
    Values inputs;
    for (size_t i = 0; i < operands.size(); ++i) {
      inputs.push_back(graph.AddInput(bound.operands[i].type, operands[i]));
    }
    fused_ = graph.EmitAll(bound.op->name, inputs, bound.op_case->attrs);
    small_ = expansion->second(graph, inputs, bound.op_case->attrs);
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
                           return !c.op->expands_to.empty();
                         })),
                         CaseName);

TEST(ExpansionTable, ListsFusedOpsOnly) {
  for (const auto& [name, expansion] : Expansions()) {
    ASSERT_NE(FindOp(name), nullptr) << name;
    EXPECT_FALSE(FindOp(name)->expands_to.empty()) << name;
  }
}

}  // namespace
}  // namespace mgc
