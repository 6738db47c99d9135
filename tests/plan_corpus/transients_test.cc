// Transients need little more than what is alive at the worst moment of their segment.

#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "passes/plan/transient_lives.h"
#include "tests/plan_corpus/pinned_plans.h"

namespace mgc {
namespace {

constexpr double kMostAboveTheBound = 1.1;

void ExpectTight(const PinnedCase& pinned) {
  const absl::StatusOr<Plan> plan =
      pinned.trained ? CompileCase(pinned.train) : CompilePlanCase(pinned.plan);
  ASSERT_TRUE(plan.ok()) << pinned.name << ": " << plan.status();
  for (const Segment& segment : plan->segments) {
    std::vector<Interval> intervals;
    for (const TransientLife& life : TransientLives(segment)) intervals.push_back(life.alive);
    const int64_t least = WorstMoment(intervals).bytes;
    EXPECT_GE(segment.transient_bytes, least) << pinned.name << ", " << segment.name;
    EXPECT_LE(static_cast<double>(segment.transient_bytes),
              kMostAboveTheBound * static_cast<double>(least))
        << pinned.name << ", " << segment.name;
  }
}

TEST(TransientsTest, AreWithinATenthOfWhatIsAlive) {
  for (PinnedCase pinned : PinnedCases()) {
    ExpectTight(pinned);
    DType& compute_type = pinned.train.parallel.compute_type;
    if (pinned.plan.bf16 || compute_type == DType::kBF16) continue;
    pinned.plan.bf16 = true;
    compute_type = DType::kBF16;
    pinned.name += " in bf16";
    ExpectTight(pinned);
  }
}

}  // namespace
}  // namespace mgc
