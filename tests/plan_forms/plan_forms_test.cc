// Compiled plans pass their check and read back, from bytes and from text, as they were written.

#include <string>

#include "graph/plan/plan_check.h"
#include "graph/plan/proto/plan_difference.h"
#include "graph/plan/proto/plan_wire.h"
#include "graph/plan/text/plan_text.h"
#include "gtest/gtest.h"
#include "tests/plan_forms/corpus.h"

namespace mgc {
namespace {

class PlanFormsTest : public testing::TestWithParam<PlanCase> {};

std::string NameOfCase(const testing::TestParamInfo<PlanCase>& info) { return info.param.name; }

TEST_P(PlanFormsTest, PassesItsCheck) {
  EXPECT_TRUE(CheckPlan(CompilePlanCase(GetParam())).ok())
      << CheckPlan(CompilePlanCase(GetParam()));
}

TEST_P(PlanFormsTest, ReadsBackFromBytes) {
  const Plan plan = CompilePlanCase(GetParam());
  const std::string bytes = SerializePlan(plan);
  const absl::StatusOr<Plan> read = DeserializePlan(bytes, "plan");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(PlanDifference(plan, *read), "");
  EXPECT_EQ(SerializePlan(*read), bytes);
}

TEST_P(PlanFormsTest, ReadsBackFromText) {
  const Plan plan = CompilePlanCase(GetParam());
  const std::string text = PrintPlan(plan);
  const absl::StatusOr<Plan> read = ParsePlan(text, "plan.mgc");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(PlanDifference(plan, *read), "");
  EXPECT_TRUE(PrintPlan(*read) == text);
  EXPECT_TRUE(SerializePlan(*read) == SerializePlan(plan));
}

INSTANTIATE_TEST_SUITE_P(Tiny, PlanFormsTest, testing::ValuesIn(TinyPlanCases()), NameOfCase);

}  // namespace
}  // namespace mgc
