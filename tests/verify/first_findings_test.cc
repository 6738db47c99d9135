// What the proof says first of plans with one mistake that no other test here makes.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "graph/ir/op.h"
#include "graph/plan/plan_check.h"
#include "graph/verify/placement/placement.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "tests/verify/edit_plan.h"

namespace mgc {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// The first finding in the plan of a case after an edit that leaves it readable.
std::string FirstAfter(absl::string_view name, const std::function<void(Plan*)>& edit) {
  Plan plan = CompileTiny(name);
  edit(&plan);
  const absl::Status readable = CheckPlan(plan);
  EXPECT_TRUE(readable.ok()) << readable;
  const VerifyReport report = VerifyPlan(plan);
  return report.ok() ? "" : ToString(report.findings[0]);
}

// A collective of the layers takes its operand `copies` times.
std::string FirstOfBucket(size_t copies) {
  return FirstAfter("tp2", [&](Plan* plan) {
    Segment& s = SegmentOf(plan, "layer.forward");
    Instr& start = s.instrs[InstrOf(s, "all_reduce")];
    start.inputs.assign(copies, start.inputs[0]);
    start.outputs.assign(copies, start.outputs[0]);
  });
}

TEST(FirstFindingTest, AResultThatIsCutOtherwiseThanItsOperands) {
  const std::string found = FirstAfter("tp2", [](Plan* plan) {
    Segment& s = SegmentOf(plan, "layer.forward");
    for (const Instr& instr : s.instrs) {
      if (instr.op == nullptr || instr.op->name != "add") continue;
      Sharding& sum = s.slots[static_cast<size_t>(instr.outputs[0])].sharding;
      if (!sum.UsedAxes().empty()) continue;
      sum.dims[2] = plan->mesh.Find("tp");
      return;
    }
  });
  EXPECT_THAT(found, HasSubstr("segment layer.forward, instruction "));
  EXPECT_THAT(found, EndsWith("[placement_v2]"));
}

TEST(FirstFindingTest, AValueReadUnderAnotherSharding) {
  const std::string found = FirstAfter("tp4_sp", [](Plan* plan) {
    Segment& s = SegmentOf(plan, "layer.reduce");
    SkipPart(&s, InstrOf(s, "all_reduce"), 0);
  });
  EXPECT_THAT(found, HasSubstr("segment layer.update2, instruction 0 sum_squares: reads "
                               "%layers.*.norm1/grad.resolved, but %layers.*.norm1/grad.next"));
  EXPECT_THAT(found, EndsWith("[placement_v8]"));
}

// As many instructions and calls as a file of some megabytes may state.
TEST(FirstFindingTest, ALayerCalledAMillionTimes) {
  Plan plan = CompileTiny("one_rank");
  Segment& s = SegmentOf(&plan, "layer.forward");
  const Instr add = s.instrs[InstrOf(s, "add")];
  s.instrs.insert(s.instrs.end(), 1 << 12, add);
  std::vector<Call>& forward = plan.classes[0].chunks[0].forward;
  forward.insert(forward.begin() + 1, 1 << 10, Call(forward[1]));
  ASSERT_TRUE(CheckPlan(plan).ok()) << CheckPlan(plan);
  Diagnostics findings;
  CheckPlacement(plan, &findings);
  EXPECT_THAT(findings.ToString(), HasSubstr("tensors, more than the 16777216 that are walked "
                                             "through [placement_v12]"));
}

TEST(FirstFindingTest, CollectivesOfTooManyTensors) {
  EXPECT_THAT(FirstOfBucket(3000), EndsWith(": an instruction has too many operands [memory_v5]"));
  EXPECT_THAT(FirstOfBucket(70000), EndsWith(": too many collectives run at once [order_v9]"));
}

}  // namespace
}  // namespace mgc
