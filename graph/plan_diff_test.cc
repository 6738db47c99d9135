#include "graph/plan_diff.h"

#include <algorithm>
#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "graph/testing/odd_plan.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

std::string DifferenceAfter(const std::function<void(Plan*)>& change) {
  Plan changed = OddPlan();
  change(&changed);
  std::string difference;
  const bool same = SamePlan(OddPlan(), changed, &difference);
  EXPECT_EQ(same, difference.empty());
  return difference;
}

TEST(PlanDiffTest, AnEqualPlanHasNoDifference) {
  EXPECT_EQ(DifferenceAfter([](Plan*) {}), "");
}

TEST(PlanDiffTest, EveryKindOfFieldCounts) {
  EXPECT_EQ(DifferenceAfter([](Plan* p) { p->vocab = 3; }), "vocabulary: 257, not 3");
  EXPECT_EQ(DifferenceAfter([](Plan* p) { p->verifier = 0; }), "") << "whoever proved it";
  EXPECT_THAT(DifferenceAfter([](Plan* p) { p->options[0].second = "x"; }), HasSubstr("options"));
  EXPECT_THAT(DifferenceAfter([](Plan* p) { p->model = Graph(); }), HasSubstr("model: name: "));
  EXPECT_EQ(DifferenceAfter([](Plan* p) { p->segments[0].slots[1].sharding.sum = {}; }),
            "segment 0: slot 1: sharding: @m[-,-]+tp, not @m[-,-]");
  EXPECT_EQ(DifferenceAfter([](Plan* p) { p->segments[0].instrs[1].loc.line = 9; }),
            "segment 0: instruction 1: place: `z:3:4`, not `z:9:4`");
  EXPECT_EQ(DifferenceAfter([](Plan* p) { p->blocks[0].entries[1].init.Set("std", 0.5); }),
            "block 0: parameter 1: init: attributes, not attributes");
  EXPECT_EQ(DifferenceAfter([](Plan* p) { p->classes[1].train.compute[2].frame = 0; }),
            "class 1: training: action 2: frame: 1536, not 0");
  EXPECT_EQ(DifferenceAfter([](Plan* p) { p->classes[1].eval.transfers[3].after[0].chunk = 4; }),
            "class 1: evaluation: transfer 3: after: chunk 0 F0, not chunk 4 F0");
  EXPECT_EQ(
      DifferenceAfter([](Plan* p) { p->classes[0].chunks[0].forward[0].bindings[2].offset = 0; }),
      "class 0: chunk 0: forward call 0: bindings: base 0+128 base 0+0 base 1+64, not base 0+128 "
      "base 0+0 base 1+0");
  EXPECT_EQ(DifferenceAfter([](Plan* p) { p->classes[0].memory.peak = 5; }),
            "class 0: peak: 16384, not 5");
}

TEST(PlanDiffTest, ListsOfOtherLengthsDiffer) {
  EXPECT_EQ(DifferenceAfter([](Plan* p) { p->classes[0].train.compute.pop_back(); }),
            "class 0: training: actions: 18, not 17");
}

TEST(PlanDiffTest, TenDifferencesAreEnough) {
  const std::string difference = DifferenceAfter([](Plan* p) {
    for (Transfer& transfer : p->classes[0].train.transfers) ++transfer.bytes;
  });
  EXPECT_EQ(std::count(difference.begin(), difference.end(), '\n'), 9);
}

}  // namespace
}  // namespace mgc
