#include "tools/views/roofline/roofline.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "graph/base/json.h"
#include "gtest/gtest.h"
#include "tools/views/testing/small_plan.h"

namespace mgc {
namespace {

using testing::HasSubstr;

Machine MachineOf(double flops, double bandwidth) {
  Machine machine;
  machine.name = "toy";
  machine.memory_bandwidth = bandwidth;
  machine.memory_efficiency = 0.5;
  machine.compute = {{"f32", flops, 0.5}};
  return machine;
}

// Two ranks measured, and one predicted.
Timeline TimelineOf(std::vector<TimelineEvent> events) {
  Timeline timeline;
  timeline.tracks = {{1, "rank 0", 1, "compute"},
                     {2, "rank 1", 1, "compute"},
                     {3, "predicted: pp 0", 1, "compute"}};
  timeline.events = std::move(events);
  return timeline;
}

// A rank's matmul has x [1, 8, 32], w [16, 32] and y [1, 8, 16]: 2 x 8 x 16 x 32 flops, and 4 x
// (256 + 512 + 128) bytes. At 1 GFLOP/s and 7 GB/s that takes 8.192 us and 0.512 us.
TEST(RooflineTest, HoldsCallsBesidePeaks) {
  const Machine machine = MachineOf(1e9, 7e9);
  const auto rows =
      Roofline(SmallPlan(), machine,
               TimelineOf({{0, "0F0", "action", 0, 99999},
                           {0, "layer.forward[0] matmul layer 0", "compute", 0, 16384},
                           {1, "layer.forward[0] matmul layer 1", "compute", 5, 16389},
                           {0, "embedding.forward[0] matmul", "compute", 0, 8192},
                           {0, "layer.forward[3] gelu layer 0", "compute", 0, 100000},
                           {2, "layer.forward[0] matmul layer 0", "compute", 0, 77}}))
          .value();
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0].op, "gelu");
  EXPECT_EQ(rows[0].shapes, "f32[1,8,16] -> f32[1,8,16]");
  EXPECT_EQ(rows[1].op, "matmul");
  EXPECT_EQ(rows[1].shapes, "f32[1,8,32] f32[16,32] -> f32[1,8,16]");
  EXPECT_EQ(rows[1].calls, 3);
  EXPECT_NEAR(rows[1].seconds, (2 * 16384 + 8192) * 1e-9, 1e-15);
  EXPECT_NEAR(rows[1].flops_seconds, 3 * 8192e-9, 1e-15);
  EXPECT_NEAR(rows[1].bytes_seconds, 3 * 512e-9, 1e-15);
  EXPECT_NEAR(rows[1].gap(), 16384e-9, 1e-15);
}

TEST(RooflineTest, TableSaysWhatIsLostAndWhere) {
  std::vector<RooflineRow> rows(30, {"gelu", "a", 1, 1e-3, 0.5e-3, 0.25e-3});
  rows[0] = {"matmul", "b", 2, 16e-3, 0.5e-3, 1.5e-3};
  const std::string text = RooflineText(MachineOf(1, 1), rows, false);
  EXPECT_THAT(text, HasSubstr("31 kernels: 45.000 ms, of which toy needs 16.000 ms\n"));
  EXPECT_THAT(text, testing::ContainsRegex("matmul +2 +16.000 +0.500 +1.500 +9.4 % +50.0 %  b"));
  EXPECT_THAT(text, testing::ContainsRegex("gelu +1 +1.000 +0.500 +0.250 +50.0 % +1.7 %  a"));
  EXPECT_THAT(text, testing::ContainsRegex("10 more +10 +10.000"));
  EXPECT_THAT(RooflineText(MachineOf(1, 1), rows, true), testing::Not(HasSubstr("more")));
}

TEST(RooflineTest, JsonHasEveryRow) {
  const std::string text = RooflineJson(MachineOf(1, 1), {{"gelu", "a", 3, 1e-3, 0.5e-3, 0.25e-3}});
  const JsonValue json = ParseJson(text, "t").value();
  EXPECT_EQ(json.Find("machine")->text, "toy");
  const JsonValue& row = json.Find("kernels")->items.at(0);
  EXPECT_EQ(row.Find("calls")->integer, 3);
  EXPECT_EQ(row.Find("bytes_seconds")->number, 0.25e-3);
}

TEST(RooflineTest, RefusesTimelinesOfOtherPlans) {
  const Machine machine = MachineOf(1, 1);
  for (const char* name : {"layer.forward[99] matmul", "layer.forward[0] add", "other[0] matmul",
                           "layer.forward[x] matmul", "]layer.forward[", ""}) {
    EXPECT_THAT(
        Roofline(SmallPlan(), machine, TimelineOf({{0, name, "compute", 0, 1}})).status().message(),
        HasSubstr("which the plan lacks"))
        << name;
  }
  EXPECT_THAT(
      Roofline(SmallPlan(), machine, TimelineOf({{2, "layer.forward[0] matmul", "compute", 0, 1}}))
          .status()
          .message(),
      HasSubstr("no measured instruction"));
}

}  // namespace
}  // namespace mgc
