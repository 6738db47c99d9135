#include "tools/views/memory.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/json.h"
#include "graph/verify/testing/sample_plan.h"
#include "gtest/gtest.h"
#include "passes/plan/time/predict_step.h"
#include "tools/views/memory_over_time.h"
#include "tools/views/peak.h"
#include "tools/views/testing/small_plan.h"

namespace mgc {
namespace {

std::string Line(const LiveBuffer& buffer) {
  return absl::StrCat(buffer.count, " x ", buffer.bytes, " ", buffer.what);
}

// While the second micro-batch is in its forward and the first waits for its backward: 448 bytes
// that stay, 128 of the first's frame, 128 of the second's; the operand and the result of a mul
// that may not work in place, since its result leaves the class.
TEST(PeakTest, IsWhatIsAliveAtTheWorstInstruction) {
  const Plan plan = EditedSample({});
  const PeakMoment moment = FindPeak(plan, plan.classes[0]);
  EXPECT_EQ(moment.bytes, 448 + 128 + 128 + 64 + 64);
  EXPECT_EQ(moment.action, "0F1");
  EXPECT_EQ(moment.segment, "layer.forward");
  EXPECT_EQ(moment.layer, 0);
  EXPECT_EQ(moment.instr, 3);
  EXPECT_EQ(moment.op, "mul");
  std::string lines;
  for (const LiveBuffer& buffer : moment.buffers) absl::StrAppend(&lines, Line(buffer), "\n");
  EXPECT_EQ(lines,
            "2 x 64 activation x\n"
            "2 x 64 activation y.part\n"
            "1 x 128 gradients of layer\n"
            "1 x 128 optimizer state of layer\n"
            "1 x 128 values of the step\n"
            "1 x 64 boundary z\n"
            "1 x 64 parameters of layer\n"
            "1 x 64 transient y\n");
}

// The second stage reads a forward's input again in its backward.
TEST(PeakTest, AnInputIsAliveUntilItsBackwardHasReadIt) {
  const Plan plan = EditedSample({});
  const PeakMoment moment = FindPeak(plan, plan.classes[1]);
  EXPECT_EQ(moment.action, "1F0");
  EXPECT_EQ(moment.op, "gelu");
}

TEST(PeakTest, WithoutInstructionsThereIsNone) {
  Plan plan = EditedSample({});
  plan.classes[0].train.compute.clear();
  EXPECT_EQ(FindPeak(plan, plan.classes[0]).instr, -1);
}

TEST(MemoryTest, TextNamesThePeakAndWhatLowersIt) {
  Plan plan = EditedSample({});
  plan.predicted_step_ns = 1000000;
  const std::string text = MemoryText(plan, {{{"--recompute full", 544, 1250000}}, {}});
  for (const char* part : {
           "highest peak: 1.1 KiB on pp 0, of 976.6 KiB on small; beside it",
           "lower bound by liveness: 832 B, 76.5 % of it, alive in 0F1, layer.forward of layer 0, "
           "instruction 3, mul\n",
           "128 B   64 B       2  activation x\n",
           "--recompute full  544 B      50.0 %  1.25 ms     125.0 %\n",
       }) {
    EXPECT_TRUE(absl::StrContains(text, part)) << part << "\n" << text;
  }
  EXPECT_FALSE(absl::StrContains(MemoryText(plan, {}), "lower with"));
}

TEST(MemoryTest, JsonHasAllOfThat) {
  const MemoryAdvice advice = {{{"--recompute full", 544, 1250000}}, {}};
  const absl::StatusOr<JsonValue> root =
      ParseJson(MemoryJson(EditedSample({}), advice), "the view");
  ASSERT_TRUE(root.ok()) << root.status();
  const JsonValue& first = root->Find("classes")->items[0];
  EXPECT_EQ(first.Find("peak")->integer, 1088);
  EXPECT_EQ(first.Find("ranks")->integer, 4);
  EXPECT_EQ(first.Find("activations")->integer, 256);
  const JsonValue& alive = *first.Find("alive");
  EXPECT_EQ(alive.Find("bytes")->integer, 832);
  EXPECT_EQ(alive.Find("op")->text, "mul");
  EXPECT_EQ(alive.Find("buffers")->items.size(), 8u);
  EXPECT_EQ(root->Find("lower")->items[0].Find("peak")->integer, 544);
}

TEST(MemoryTest, ClassesThatChangeEvenlyAreOneRow) {
  Plan plan = SmallPlan();
  plan.classes.resize(5, plan.classes[1]);
  for (int c = 0; c < 5; ++c) {
    plan.classes[static_cast<size_t>(c)].coordinate = c;
    plan.classes[static_cast<size_t>(c)].memory.frames = int64_t{1024} * (10 - c);
  }
  EXPECT_TRUE(absl::StrContains(MemoryTable(plan), "0-4  5 x ")) << MemoryTable(plan);
  EXPECT_TRUE(absl::StrContains(MemoryTable(plan), "10.0 KiB to 6.0 KiB"));
  EXPECT_TRUE(absl::StrContains(MemoryTable(plan, /*all=*/true), "  8.0 KiB  "));
  plan.classes[2].memory.frames = 7900;
  const std::string table = MemoryTable(plan);
  EXPECT_FALSE(absl::StrContains(table, "0-4")) << table;
  EXPECT_TRUE(absl::StrContains(table, "7.7 KiB")) << table;
}

TEST(MemoryOverTimeTest, StaysWithinItsRegions) {
  const Plan plan = EditedSample({});
  const SimulatedStep step = *PredictStep(plan);
  for (const PlanClass& plan_class : plan.classes) {
    int64_t most = 0;
    int64_t before = 0;
    const std::vector<MemorySample> samples = MemoryOverTime(plan, plan_class, step);
    for (const MemorySample& sample : samples) {
      EXPECT_GE(sample.begin_ns, before);
      before = sample.begin_ns;
      EXPECT_LE(sample.activations, plan_class.memory.frames);
      EXPECT_LE(sample.transient, plan_class.memory.transient);
      most = std::max(most, sample.activations);
    }
    EXPECT_EQ(most, plan_class.memory.frames);  // its frames are all in use at some time
    EXPECT_EQ(samples.back().activations, 0);
  }
}

}  // namespace
}  // namespace mgc
