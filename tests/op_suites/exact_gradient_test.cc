// Every gradient rule against the derivative in dual numbers over residues, exactly.
//
// With t the operands' tangents, w what the results' gradients are and J the op's derivative, the
// rule gives J^T w and dual numbers give J t, and <J^T w, t> = <w, J t>. Tangents and gradients are
// random, so that a wrong entry passes by chance only (once in 2^122). A rule that holds for real
// numbers only fails here.

#include <map>
#include <set>

#include "tests/op_suites/gradient_context.h"
#include "tests/op_suites/small_graph.h"
#include "tests/op_suites/suite.h"

namespace mgc {
namespace {

constexpr uint64_t kModelKey = 31;

using DualTensor = HostTensor<DualPair>;

class ExactGradientTest : public testing::TestWithParam<BoundCase> {
 protected:
  void SetUp() override {
    std::mt19937_64 random(kDrawSeed);
    operands_ = DrawResidues(bound(), random);
    for (const CaseOperand& operand : bound().operands) {
      tangents_.push_back(DrawResidues(operand.type, random));
    }
    for (const TensorType& type : bound().results) {
      seeds_.push_back(DrawResidues(type, random));
    }
  }

  const BoundCase& bound() const { return GetParam(); }

  // <J^T w, t> over the wanted operands, by the rule.
  ResiduePair FromRule(const std::set<int>& wanted) {
    SmallGraphOf<ResidueModel> graph{ResidueModel(kModelKey)};
    const std::map<int, ValueId> gradients =
        GradientsByRule(bound(), operands_, seeds_, wanted, &graph);
    EXPECT_EQ(graph.model().zero_denominators(), 0);
    ResiduePair sum;
    for (const auto& [i, value] : gradients) {
      sum = sum + Dot(graph.value(value), tangents_[static_cast<size_t>(i)]);
    }
    return sum;
  }

  // <w, J t>, only the wanted operands moving.
  ResiduePair FromDualNumbers(const std::set<int>& wanted) {
    const DualModel model(kModelKey);
    std::vector<DualTensor> moving;
    for (size_t i = 0; i < operands_.size(); ++i) {
      const bool moves = wanted.count(static_cast<int>(i)) > 0;
      moving.push_back(DualTensor::Make(operands_[i].shape, operands_[i].is_index));
      moving.back().index = operands_[i].index;
      for (size_t j = 0; j < operands_[i].real.size(); ++j) {
        moving.back().real[j] = {operands_[i].real[j],
                                 moves ? tangents_[i].real[j] : ResiduePair()};
      }
    }
    std::vector<const DualTensor*> pointers;
    pointers.reserve(moving.size());
    for (const DualTensor& operand : moving) pointers.push_back(&operand);
    const std::vector<DualTensor> results =
        EvaluateWhole(model, *bound().op, bound().op_case->attrs, bound().rule, bound().results,
                      pointers, kDropoutSeed);
    EXPECT_EQ(model.missing_derivatives(), 0);
    EXPECT_EQ(model.values().zero_denominators(), 0);
    ResiduePair sum;
    for (size_t r = 0; r < NumDifferentiableResults(bound()); ++r) {
      ResidueTensor moved = ResidueTensor::Make(results[r].shape, false);
      for (size_t j = 0; j < moved.real.size(); ++j) moved.real[j] = results[r].real[j].tangent;
      sum = sum + Dot(moved, seeds_[r]);
    }
    return sum;
  }

  static ResiduePair Dot(const ResidueTensor& x, const ResidueTensor& y) {
    EXPECT_EQ(x.real.size(), y.real.size());
    ResiduePair sum;
    for (size_t i = 0; i < x.real.size(); ++i) sum = sum + x.real[i] * y.real[i];
    return sum;
  }

  std::vector<ResidueTensor> operands_;
  std::vector<ResidueTensor> tangents_;
  std::vector<ResidueTensor> seeds_;
};

TEST_P(ExactGradientTest, IsTheTransposedDerivative) {
  const std::set<int> all = DifferentiableOperands(bound());
  for (int i : all) {
    const ResiduePair expected = FromDualNumbers({i});
    const ResiduePair actual = FromRule({i});
    EXPECT_EQ(actual.a, expected.a) << "operand " << i;
    EXPECT_EQ(actual.b, expected.b) << "operand " << i;
  }
  EXPECT_TRUE(FromRule(all) == FromDualNumbers(all));
}

INSTANTIATE_TEST_SUITE_P(Ops, ExactGradientTest, testing::ValuesIn(DifferentiableCases()),
                         CaseName);

}  // namespace
}  // namespace mgc
