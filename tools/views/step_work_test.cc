#include "tools/views/step_work.h"

#include "gtest/gtest.h"
#include "tools/views/drawings/timeline.h"
#include "tools/views/testing/small_plan.h"

namespace mgc {
namespace {

// Every rank of a class runs what the predicted timeline shows of it.
TEST(PlanWork, IsWhatTheTimelineShows) {
  Plan plan = SmallPlan();
  for (ComputeRate& rate : plan.machine.compute) rate.flops = 1e9;
  FlopCounter counter(plan);
  double flops = 0;
  for (const PlanClass& plan_class : plan.classes) {
    for (const Action& action : plan_class.train.compute) {
      flops += 4.0 * static_cast<double>(  // tp 2, dp 2
                         counter.Of(CallsOf(plan, plan_class, /*eval=*/false, action.ref)));
    }
  }
  const PlanWork work = WorkOf(plan);
  EXPECT_GT(work.flops, 0);
  EXPECT_EQ(work.flops, flops);
  EXPECT_NEAR(work.device_seconds, flops / 1e9, 1e-12);
}

}  // namespace
}  // namespace mgc
