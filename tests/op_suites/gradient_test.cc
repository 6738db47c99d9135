// Every gradient rule against central differences in double.

#include <map>
#include <set>

#include "tests/op_suites/gradient_context.h"
#include "tests/op_suites/small_graph.h"
#include "tests/op_suites/suite.h"

namespace mgc {
namespace {

constexpr double kStep = 1e-5;
// Central differences err by kStep^2 times third derivatives and by rounding over kStep.
constexpr double kTolerance = 1e-6;

class GradientTest : public testing::TestWithParam<BoundCase> {
 protected:
  void SetUp() override {
    std::mt19937_64 random(kDrawSeed);
    operands_ = DrawOperands(bound(), random);
    std::uniform_real_distribution<double> weight(-1, 1);
    for (const TensorType& type : bound().results) {
      std::vector<int64_t> shape;
      for (const Dim& dim : type.dims) shape.push_back(dim.size);
      seeds_.push_back(RealTensor::Make(shape, false));
      for (double& x : seeds_.back().real) x = weight(random);
    }
  }

  const BoundCase& bound() const { return GetParam(); }

  // Gradients of the seeded sum of results with respect to `wanted` operands.
  std::map<int, std::vector<double>> FromRule(const std::set<int>& wanted) {
    SmallGraph graph;
    std::map<int, std::vector<double>> gradients;
    for (const auto& [i, value] : GradientsByRule(bound(), operands_, seeds_, wanted, &graph)) {
      gradients[i] = graph.value(value).real;
    }
    return gradients;
  }

  double Loss(const std::vector<RealTensor>& operands) const {
    std::vector<const RealTensor*> pointers;
    pointers.reserve(operands.size());
    for (const RealTensor& operand : operands) pointers.push_back(&operand);
    const std::vector<RealTensor> results = EvaluateWhole(
        *bound().op, bound().op_case->attrs, bound().rule, bound().results, pointers, kDropoutSeed);
    double loss = 0;
    for (size_t r = 0; r < NumDifferentiableResults(bound()); ++r) {
      for (size_t i = 0; i < results[r].real.size(); ++i) {
        loss += results[r].real[i] * seeds_[r].real[i];
      }
    }
    return loss;
  }

  std::vector<double> FromDifferences(int operand) {
    std::vector<double> gradient;
    std::vector<RealTensor> moved = operands_;
    for (double& x : moved[static_cast<size_t>(operand)].real) {
      const double at = x;
      x = at + kStep;
      const double above = Loss(moved);
      x = at - kStep;
      const double below = Loss(moved);
      x = at;
      gradient.push_back((above - below) / (2 * kStep));
    }
    return gradient;
  }

  std::vector<RealTensor> operands_;
  std::vector<RealTensor> seeds_;
};

TEST_P(GradientTest, EqualsFiniteDifferences) {
  const std::set<int> wanted = DifferentiableOperands(bound());
  const auto gradients = FromRule(wanted);
  for (int i : wanted) {
    const auto it = gradients.find(i);
    ASSERT_NE(it, gradients.end()) << "no gradient for operand " << i;
    ExpectClose(it->second, FromDifferences(i), kTolerance, "gradient of operand");
  }
}

// A rule asked for one operand's gradient gives that one and no other.
TEST_P(GradientTest, GivesWhatIsWantedOnly) {
  const std::set<int> all = DifferentiableOperands(bound());
  const auto together = FromRule(all);
  EXPECT_TRUE(FromRule({}).empty());
  for (int i : all) {
    const auto alone = FromRule({i});
    ASSERT_EQ(alone.size(), 1u);
    EXPECT_EQ(alone.begin()->first, i);
    EXPECT_EQ(alone.begin()->second, together.at(i));
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, GradientTest, testing::ValuesIn(DifferentiableCases()), CaseName);

}  // namespace
}  // namespace mgc
