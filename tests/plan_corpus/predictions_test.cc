// The step time that a compiled plan states is that of its lists as they stand.

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "passes/plan/time/predict_step.h"
#include "tests/plan_corpus/pinned_plans.h"

namespace mgc {
namespace {

TEST(PredictionsTest, APlanTakesWhatItWasPredictedToTake) {
  for (const PinnedCase& pinned : PinnedCases()) {
    const absl::StatusOr<Plan> plan =
        pinned.trained ? CompileCase(pinned.train) : CompilePlanCase(pinned.plan);
    ASSERT_TRUE(plan.ok()) << pinned.name << ": " << plan.status();
    const absl::StatusOr<SimulatedStep> step = PredictStep(*plan);
    ASSERT_TRUE(step.ok()) << pinned.name << ": " << step.status();
    EXPECT_EQ(step->makespan_ns, plan->predicted_step_ns) << pinned.name;
  }
}

}  // namespace
}  // namespace mgc
