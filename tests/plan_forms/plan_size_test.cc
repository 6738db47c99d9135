// Plans of the largest models fit into small files.

#include <string>

#include "graph/plan/proto/plan_difference.h"
#include "graph/plan/proto/plan_wire.h"
#include "gtest/gtest.h"
#include "tests/plan_forms/corpus.h"

namespace mgc {
namespace {

constexpr size_t kMaxBytes = 2'000'000;

class PlanSizeTest : public testing::TestWithParam<PlanCase> {};

TEST_P(PlanSizeTest, FitsAndReadsBack) {
  const Plan plan = CompilePlanCase(GetParam());
  const std::string bytes = SerializePlan(plan);
  EXPECT_LT(bytes.size(), kMaxBytes);
  const absl::StatusOr<Plan> read = DeserializePlan(bytes, "plan");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(PlanDifference(plan, *read), "");
}

INSTANTIATE_TEST_SUITE_P(Large, PlanSizeTest, testing::ValuesIn(LargePlanCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mgc
