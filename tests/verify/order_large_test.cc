// Order and Memory of plans for thousands of ranks, at full length.

#include <string>

#include "graph/plan/plan.h"
#include "graph/verify/memory/memory.h"
#include "graph/verify/order/order.h"
#include "gtest/gtest.h"
#include "tests/plan_forms/corpus.h"

namespace mgc {
namespace {

class LargeOrderTest : public ::testing::TestWithParam<PlanCase> {};

TEST_P(LargeOrderTest, IsProvedAndMissingCreditsAreFound) {
  Plan plan = CompilePlanCase(GetParam());
  Diagnostics findings;
  CheckOrder(plan, &findings);
  CheckMemory(plan, &findings);
  EXPECT_TRUE(findings.empty()) << ToString(findings[0]);
  // Then a middle class without credits.
  Program& program = plan.classes[plan.classes.size() / 2].train;
  for (Transfer& transfer : program.transfers) {
    transfer.after.clear();
    transfer.after_transfers.clear();
  }
  CheckOrder(plan, &findings);
  EXPECT_TRUE(findings.Has("order_v6"));
}

INSTANTIATE_TEST_SUITE_P(Large, LargeOrderTest, ::testing::ValuesIn(LargePlanCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mgc
