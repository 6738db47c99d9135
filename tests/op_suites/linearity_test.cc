// Ops that say that they are linear are: f(x + y) = f(x) + f(y), in each linear operand with the
// others fixed, or in all of them together.

#include "tests/op_suites/small_graph.h"
#include "tests/op_suites/suite.h"

namespace mgc {
namespace {

// Relative to the largest entry; the sums differ in rounding only.
constexpr double kTolerance = 1e-12;

std::vector<std::vector<double>> Evaluate(const BoundCase& bound,
                                          const std::vector<RealTensor>& operands) {
  std::vector<const RealTensor*> pointers;
  pointers.reserve(operands.size());
  for (const RealTensor& operand : operands) pointers.push_back(&operand);
  std::vector<std::vector<double>> results;
  for (const RealTensor& result : EvaluateWhole(*bound.op, bound.op_case->attrs, bound.rule,
                                                bound.results, pointers, kDropoutSeed)) {
    results.push_back(AsReals(result));
  }
  return results;
}

class LinearityTest : public testing::TestWithParam<BoundCase> {
 protected:
  // Operands of `varied` differ between x and y and are added up in x + y; others are the same.
  void ExpectAdditive(const std::vector<int>& varied) {
    std::mt19937_64 random(kDrawSeed);
    const std::vector<RealTensor> x = DrawOperands(GetParam(), random);
    const std::vector<RealTensor> fresh = DrawOperands(GetParam(), random);
    std::vector<RealTensor> y = x;
    std::vector<RealTensor> sum = x;
    for (int i : varied) {
      const size_t k = static_cast<size_t>(i);
      y[k] = fresh[k];
      for (size_t j = 0; j < x[k].real.size(); ++j) sum[k].real[j] = x[k].real[j] + y[k].real[j];
    }
    const auto of_x = Evaluate(GetParam(), x);
    const auto of_y = Evaluate(GetParam(), y);
    const auto of_sum = Evaluate(GetParam(), sum);
    for (size_t r = 0; r < of_sum.size(); ++r) {
      std::vector<double> expected = of_x[r];
      for (size_t j = 0; j < expected.size(); ++j) expected[j] += of_y[r][j];
      ExpectClose(of_sum[r], expected, kTolerance, "result");
    }
  }
};

TEST_P(LinearityTest, IsAdditive) {
  const OpDef& op = *GetParam().op;
  std::vector<int> linear = op.linear_operands;
  for (size_t i = 0; linear.size() < GetParam().operands.size() && op.linear_operands.empty();
       ++i) {
    linear.push_back(static_cast<int>(i));
  }
  if (op.linearity == Linearity::kJoint) {
    ExpectAdditive(linear);
    for (const std::vector<int>& term : op.linear_terms) {
      // Another factor of the product varies with the rest.
      for (int i : term) {
        std::vector<int> varied = {i};
        for (const std::vector<int>& other : op.linear_terms) {
          if (&other != &term) varied.push_back(other[0]);
        }
        ExpectAdditive(varied);
      }
    }
    return;
  }
  for (int i : linear) ExpectAdditive({i});
}

INSTANTIATE_TEST_SUITE_P(Ops, LinearityTest, testing::ValuesIn(CasesWhere([](const BoundCase& c) {
                           return c.op->linearity != Linearity::kNone &&
                                  c.results[0].dtype != DType::kI64;
                         })),
                         CaseName);

}  // namespace
}  // namespace mgc
