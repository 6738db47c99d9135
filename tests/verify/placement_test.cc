// Shardings of compiled plans: all of them are proved, damaged ones are refused with the reason.

#include "graph/verify/placement/placement.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/plan_forms/corpus.h"

namespace mgc {
namespace {

std::string FindingsOf(const Plan& plan) {
  Diagnostics findings;
  CheckPlacement(plan, &findings);
  return findings.ToString();
}

class PlacementTest : public testing::TestWithParam<PlanCase> {};

TEST_P(PlacementTest, HoldsForCompiledPlans) {
  const Plan plan = CompilePlanCase(GetParam());
  EXPECT_EQ(FindingsOf(plan), "");
}

std::string CaseName(const testing::TestParamInfo<PlanCase>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Tiny, PlacementTest, testing::ValuesIn(TinyPlanCases()), CaseName);
INSTANTIATE_TEST_SUITE_P(Large, PlacementTest, testing::ValuesIn(LargePlanCases()), CaseName);

}  // namespace
}  // namespace mgc
