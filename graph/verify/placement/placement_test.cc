#include "graph/verify/placement/placement.h"

#include "graph/plan/plan_check.h"
#include "graph/plan/testing/odd_plan.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

// A plan that readers accept, though it computes nothing sensible: every label's way is taken
// without harm, findings are many.
TEST(PlacementTest, StrangePlansAreRefused) {
  const Plan plan = OddPlan();
  ASSERT_TRUE(CheckPlan(plan).ok());
  Diagnostics findings;
  CheckPlacement(plan, &findings);
  for (const char* label : {"placement_v3", "placement_v6", "placement_v7", "placement_v10"}) {
    EXPECT_TRUE(findings.Has(label)) << label;
  }
}

TEST(PlacementTest, PlansWithoutAnythingInThem) {
  Plan plan = OddPlan();
  for (Segment& segment : plan.segments) {
    segment.slots.clear();
    segment.instrs.clear();
    segment.num_collectives = 0;
  }
  plan.blocks[0].entries.clear();
  for (PlanClass& rank_class : plan.classes) rank_class.carried.clear();
  ASSERT_TRUE(CheckPlan(plan).ok()) << CheckPlan(plan);
  Diagnostics findings;
  CheckPlacement(plan, &findings);
  for (const Diagnostic& finding : findings) {
    EXPECT_TRUE(finding.label == "placement_v10" || finding.label == "placement_v9")
        << ToString(finding);
  }
  EXPECT_TRUE(findings.Has("placement_v10")) << "reports and parameters are missing";
}

}  // namespace
}  // namespace mgc
