// The step time that a compiled plan states is that of its lists as they stand.

#include <algorithm>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "passes/plan/time/predict_step.h"
#include "tests/plan_corpus/pinned_plans.h"

namespace mgc {
namespace {

// Whether layers gather for their own forward: what is held back for a transfer, lists do earlier.
bool GathersBetweenLayers(const Plan& plan) {
  return std::any_of(plan.segments.begin(), plan.segments.end(), [](const Segment& segment) {
    return std::any_of(segment.formals.begin(), segment.formals.end(),
                       [](const Formal& f) { return f.region == Region::kGathered; });
  });
}

TEST(PredictionsTest, APlanTakesWhatItWasPredictedToTake) {
  for (const PinnedCase& pinned : PinnedCases()) {
    const absl::StatusOr<Plan> plan =
        pinned.trained ? CompileCase(pinned.train) : CompilePlanCase(pinned.plan);
    ASSERT_TRUE(plan.ok()) << pinned.name << ": " << plan.status();
    const absl::StatusOr<SimulatedStep> step = PredictStep(*plan);
    ASSERT_TRUE(step.ok()) << pinned.name << ": " << step.status();
    const int64_t least = GathersBetweenLayers(*plan) ? plan->predicted_step_ns * 995 / 1000
                                                      : plan->predicted_step_ns;
    EXPECT_GE(step->makespan_ns, least) << pinned.name;
    EXPECT_LE(step->makespan_ns, plan->predicted_step_ns) << pinned.name;
  }
}

}  // namespace
}  // namespace mgc
