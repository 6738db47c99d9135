#include "tools/views/drawings/dot.h"

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/json.h"
#include "gtest/gtest.h"
#include "tools/views/drawings/dot_writer.h"
#include "tools/views/drawings/segment_nodes.h"
#include "tools/views/testing/small_plan.h"

namespace mgc {
namespace {

int Count(const std::string& text, const std::string& part) {
  const std::vector<std::string> pieces = absl::StrSplit(text, part);
  return static_cast<int>(pieces.size()) - 1;
}

TEST(DotWriterTest, QuotesHostileText) {
  EXPECT_EQ(DotQuote("a\"b\\c\nd\x01\xff"), R"("a\"b\\c\nd??")");
}

TEST(SegmentNodesTest, FollowsDataThroughMemory) {
  const Plan plan = SmallPlan();
  const SegmentNodes nodes = NodesOf(plan, plan.segments[1], Detail::kFull);
  ASSERT_EQ(nodes.nodes.size(), 3);  // matmul, all-reduce, gelu; no wait
  EXPECT_EQ(nodes.nodes[1].label, "g: all-reduce\ntp, 512 B");
  EXPECT_EQ(nodes.nodes[1].collective, CollectiveKind::kAllReduce);
  EXPECT_FALSE(nodes.nodes[0].collective.has_value());
  EXPECT_EQ(nodes.flow, (std::vector<std::pair<int, int>>{{0, 1}, {1, 2}}));
  EXPECT_EQ(nodes.nodes[0].tooltip,
            "%y.owed: f32[batch=2,seq=8,embed=16] @m[dp,-,-]+tp = matmul(%x, %layers.*.w) "
            "{spec=\"b s m, e m -> b s e\"}");
}

TEST(SegmentNodesTest, Folds) {
  const Plan plan = SmallPlan();
  Segment segment = plan.segments[1];
  segment.instrs.insert(segment.instrs.begin(), segment.instrs[0]);
  const SegmentNodes nodes = NodesOf(plan, segment, Detail::kCollectives);
  ASSERT_EQ(nodes.nodes.size(), 3);
  EXPECT_EQ(nodes.nodes[0].label, "2 ops\nmatmul x2");
  EXPECT_EQ(nodes.nodes[2].label, "gelu");
  EXPECT_EQ(nodes.flow, (std::vector<std::pair<int, int>>{{0, 1}, {1, 2}}));
  EXPECT_EQ(NodesOf(plan, segment, Detail::kBox).nodes.size(), 1);
}

TEST(DotTest, CollapsesLayersAndDrawsCollectives) {
  const DotDrawing drawing = DrawPlan(SmallPlan(/*layers=*/24), {});
  EXPECT_TRUE(absl::StrContains(drawing.dot, "layer.forward x12")) << drawing.dot;
  EXPECT_TRUE(absl::StrContains(drawing.dot, R"("g: all-reduce\ntp, 512 B", shape="cds")"));
  EXPECT_TRUE(absl::StrContains(drawing.dot, R"("f: all-reduce\ntp, 512 B", shape="cds")"));
  EXPECT_TRUE(absl::StrContains(drawing.dot, "trapezium"));
  EXPECT_TRUE(absl::StrContains(drawing.dot, "send F, 512 B"));
  EXPECT_EQ(Count(drawing.dot, "subgraph \"cluster_s0\""), 1);
  EXPECT_EQ(Count(drawing.dot, "subgraph \"cluster_s1\""), 1);
  EXPECT_EQ(Count(drawing.dot, "forward: layer.forward"), 1);  // in full only once
  EXPECT_TRUE(absl::StrContains(absl::StrJoin(drawing.collapsed, "\n"), "drawn once"));
}

TEST(DotTest, PhasesDifferInMoreThanColour) {
  const DotDrawing drawing = DrawPlan(SmallPlan(), {});
  for (const char* look : {"\"forward: layer.forward (layer 0)\"", "style=\"filled,solid\"",
                           "\"backward: layer.backward (layer 0)\"", "style=\"filled,dashed\"",
                           "style=\"filled,dotted\""}) {
    EXPECT_TRUE(absl::StrContains(drawing.dot, look)) << look << "\n" << drawing.dot;
  }
}

TEST(DotTest, ExpandsOnRequest) {
  DotOptions layers;
  layers.expand = DotExpand::kLayers;
  const DotDrawing by_layer = DrawPlan(SmallPlan(8), layers);
  EXPECT_TRUE(absl::StrContains(by_layer.dot, "layer.forward (layer 7)"));
  DotOptions all;
  all.expand = DotExpand::kAll;
  const DotDrawing everything = DrawPlan(SmallPlan(8), all);
  EXPECT_EQ(Count(everything.dot, "forward: layer.forward"), 8);
  EXPECT_TRUE(everything.collapsed.empty()) << absl::StrJoin(everything.collapsed, "\n");
}

// Makes the last stage like the first by giving both the same calls.
TEST(DotTest, StagesThatAreAlikeAreOne) {
  Plan plan = SmallPlan(8);
  plan.classes[1].chunks[0].forward = plan.classes[0].chunks[0].forward;
  plan.classes[1].chunks[0].backward = plan.classes[0].chunks[0].backward;
  plan.classes[1].chunks[0].last_backward = plan.classes[0].chunks[0].last_backward;
  const DotDrawing drawing = DrawPlan(plan, {});
  EXPECT_TRUE(absl::StrContains(drawing.dot, "stages 0-1 x2"));
  EXPECT_EQ(Count(drawing.dot, "subgraph \"cluster_s1\""), 0);
  DotOptions stages;
  stages.expand = DotExpand::kStages;
  EXPECT_EQ(Count(DrawPlan(plan, stages).dot, "subgraph \"cluster_s1\""), 1);
}

// A transfer between stages that are drawn as one must not be cut at their border.
TEST(DotTest, TransferWithinOneCluster) {
  Plan plan = SmallPlan(8);
  for (PlanClass& plan_class : plan.classes) {
    plan_class.chunks[0].forward.assign(3, {1, 0, {}});
    plan_class.chunks[0].backward.assign(3, {4, 0, {}});
    plan_class.chunks[0].last_backward.clear();
  }
  const std::string dot = DrawPlan(plan, {}).dot;
  EXPECT_TRUE(absl::StrContains(dot, R"("s0_F0_2" -> "s0_F0_0" [label="send F)")) << dot;
  EXPECT_FALSE(absl::StrContains(dot, R"(ltail="cluster_s0_F0", lhead="cluster_s0_F0")")) << dot;
}

TEST(DotTest, FoldsUntilTheDrawingIsSmall) {
  Plan plan = SmallPlan();
  for (Segment& segment : plan.segments) {
    const std::vector<Instr> instrs = segment.instrs;
    for (int i = 0; i < 100; ++i) {
      segment.instrs.insert(segment.instrs.end(), instrs.begin(), instrs.end());
    }
  }
  const DotDrawing drawing = DrawPlan(plan, {});
  EXPECT_LE(drawing.nodes, 300);
  EXPECT_TRUE(absl::StrContains(absl::StrJoin(drawing.collapsed, "\n"), "one node"));
}

TEST(DotTest, OverviewHasABoxForEachClass) {
  DotOptions options;
  options.expand = DotExpand::kNone;
  const DotDrawing drawing = DrawPlan(SmallPlan(/*layers=*/8), options);
  EXPECT_EQ(drawing.nodes, 3);  // two classes and the grid of ranks
  for (const char* part :
       {"pp 0: 4 ranks\\nstage 0: embedding, layers 0-3\\npeak ",
        "pp 1: 4 ranks\\nstage 1: layers 4-7", R"("c0" -> "c1" [label="4 x 512 B", style="solid")",
        R"("c1" -> "c0" [label="4 x 512 B", style="dashed")",
        "ranks of pp 0:\\ntp 2 across, dp 2 down\\n0 1\\n2 3", "4 micro-batches of"}) {
    EXPECT_TRUE(absl::StrContains(drawing.dot, part)) << part << "\n" << drawing.dot;
  }
}

TEST(DotTest, ALargePlanIsDrawnAsAnOverview) {
  Plan plan = SmallPlan(/*layers=*/8);
  EXPECT_TRUE(absl::StrContains(DrawPlan(plan, {}).dot, "layer.forward"));
  plan.stages.resize(kMostStagesInDetail + 1);
  EXPECT_FALSE(absl::StrContains(DrawPlan(plan, {}).dot, "layer.forward"));
  DotOptions options;
  options.expand = DotExpand::kSegments;
  EXPECT_TRUE(absl::StrContains(DrawPlan(plan, options).dot, "layer.forward"));
}

// Twenty classes of which all but the ends are alike.
TEST(DotTest, OverviewJoinsClassesThatAreAlike) {
  Plan plan = SmallPlan(/*layers=*/8);
  const PlanClass end = plan.classes[1];
  PlanClass middle = plan.classes[1];
  middle.chunks[0].has_head = false;
  plan.classes.resize(1);
  plan.stages.resize(1);
  for (int c = 1; c < 20; ++c) {
    plan.classes.push_back(c < 19 ? middle : end);
    plan.classes.back().memory.peak += c;
    plan.classes.back().coordinate = plan.classes.back().chunks[0].stage = c;
    plan.stages.push_back({c, 0});
  }
  const DotDrawing drawing = DrawPlan(plan, {});
  EXPECT_EQ(drawing.nodes, 4);
  EXPECT_TRUE(absl::StrContains(drawing.dot, "pp 1-18: 18 x ")) << drawing.dot;
}

TEST(DotTest, SendsLookLikeThePhaseWhoseResultTheyCarry) {
  const std::string dot = DrawPlan(SmallPlan(), {}).dot;
  EXPECT_TRUE(absl::StrContains(dot, R"([label="send F, 512 B", style="solid", color="#0072B2")"));
  EXPECT_TRUE(absl::StrContains(dot, R"([label="send B, 512 B", style="dashed", color="#D55E00")"));
}

TEST(DotTest, Json) {
  const DotDrawing drawing = DrawPlan(SmallPlan(), {});
  const absl::StatusOr<JsonValue> root = ParseJson(DotJson(drawing), "dot");
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(root->Find("nodes")->integer, drawing.nodes);
  EXPECT_EQ(root->Find("dot")->text, drawing.dot);
}

}  // namespace
}  // namespace mgc
