// The whole proof on the plans of large models, for thousands of ranks.

#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "tests/plan_forms/corpus.h"

namespace mgc {
namespace {

class LargePlanTest : public testing::TestWithParam<PlanCase> {};

TEST_P(LargePlanTest, IsProved) {
  const VerifyReport report = VerifyPlan(CompilePlanCase(GetParam()));
  EXPECT_EQ(report.findings.ToString(), "");
  EXPECT_EQ(report.runs, 4);
  EXPECT_LT(report.miss_probability, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Models, LargePlanTest, testing::ValuesIn(LargePlanCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mgc
