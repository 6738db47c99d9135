#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/json.h"
#include "gtest/gtest.h"
#include "tools/views/axes.h"
#include "tools/views/comm.h"
#include "tools/views/dims.h"
#include "tools/views/format.h"
#include "tools/views/groups.h"
#include "tools/views/instructions.h"
#include "tools/views/repeats.h"
#include "tools/views/schedule.h"
#include "tools/views/show.h"
#include "tools/views/summary.h"
#include "tools/views/testing/small_plan.h"

namespace mgc {
namespace {

JsonValue Parsed(const std::string& text) {
  absl::StatusOr<JsonValue> value = ParseJson(text, "view");
  EXPECT_TRUE(value.ok()) << value.status() << "\n" << text;
  return value.ok() ? *value : JsonValue{};
}

std::string Line(const CommEntry& entry) {
  return absl::StrCat(entry.stage, " ", entry.phase, " ",
                      entry.layer.has_value() ? absl::StrCat(*entry.layer) : "-", " ", entry.op,
                      " ", entry.group, " ", entry.label, " ", entry.count, " ",
                      entry.payload_bytes, " ", entry.wire_bytes);
}

TEST(FormatTest, Durations) {
  EXPECT_EQ(DurationText(950), "950 ns");
  EXPECT_EQ(DurationText(1500), "1.5 us");
  EXPECT_EQ(DurationText(12300000), "12.3 ms");
  EXPECT_EQ(DurationText(2000000000), "2.00 s");
}

TEST(FormatTest, Tables) {
  EXPECT_EQ(TableText({{"a", "long"}, {"wide", "1"}}, {false, true}), "a     long\nwide     1\n");
}

TEST(FormatTest, Counts) {
  EXPECT_EQ(CountText(9999), "9999");
  EXPECT_EQ(CountText(262144), "0.26 M");
  EXPECT_EQ(CountText(405853388800), "405.9 B");
  EXPECT_EQ(CountText(1008038707200), "1.01 T");
}

TEST(FormatTest, Ranges) {
  EXPECT_EQ(RangesText({}), "");
  EXPECT_EQ(RangesText({3}), "3");
  EXPECT_EQ(RangesText({0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
  EXPECT_EQ(RangesText({0, 8}), "0, 8");
  EXPECT_EQ(RangesText({0, 8, 16, 17, 18}), "0-16 by 8, 17-18");
}

TEST(FormatTest, LinesThatSayTheSame) {
  const NumberedLines lines = {{0, "a"}, {1, "b"}, {2, "a"}, {3, "b"}, {4, "b"}};
  EXPECT_EQ(LinesText("stage", "stages", lines, false), "stages 0, 2: a\nstages 1, 3-4: b\n");
  EXPECT_EQ(LinesText("stage", "stages", lines, true),
            "stage 0: a\nstage 1: b\nstage 2: a\nstage 3: b\nstage 4: b\n");
}

TEST(SummaryTest, SaysWhatWasMade) {
  Plan plan = SmallPlan();
  for (PlanClass& plan_class : plan.classes) plan_class.memory.peak = 3 << 20;
  plan.machine.memory = int64_t{1} << 30;
  const std::string begin = "a.plan: 4096 parameters on 8 ranks (tp 2, dp 2, pp 2), step 1.5 ms ";
  EXPECT_EQ(SummaryText(plan, "a.plan", /*limited=*/false),
            absl::StrCat(begin, "predicted on ", plan.machine.name, ", peak 3.0 MiB a rank\n"));
  EXPECT_EQ(SummaryText(plan, "a.plan", /*limited=*/true),
            absl::StrCat(begin, "predicted on ", plan.machine.name,
                         ", fits: peak 3.0 MiB of 1.0 GiB a rank\n"));
}

TEST(CommTest, OneEntryForEachLayerPhaseAndKind) {
  std::string lines;
  for (const CommEntry& entry : CommEntries(SmallPlan())) {
    absl::StrAppend(&lines, Line(entry), "\n");
  }
  // An activation is 2 * 8 * 16 floats over dp 2; a weight 16 * 64 over tp 2.
  EXPECT_EQ(lines,
            "0 forward - all-reduce tp g 1 512 512\n"
            "0 forward 0 all-reduce tp g 1 512 512\n"
            "0 forward - send pp activation 1 512 512\n"
            "0 backward 0 all-reduce tp f 1 512 512\n"
            "0 backward - all-reduce-max tp vocabulary 1 32 32\n"
            "0 backward - recv pp gradient 1 512 512\n"
            "0 update - reduce-scatter dp gradient 1 4096 2048\n"
            "0 update - all-reduce tp norm 1 24 24\n"
            "1 forward 1 all-reduce tp g 1 512 512\n"
            "1 forward - all-reduce-max tp vocabulary 1 32 32\n"
            "1 forward - recv pp activation 1 512 512\n"
            "1 backward - all-reduce tp f 1 512 512\n"
            "1 backward 1 all-reduce tp f 1 512 512\n"
            "1 backward - send pp gradient 1 512 512\n"
            "1 update - reduce-scatter dp gradient 1 4096 2048\n"
            "1 update - all-reduce tp norm 1 24 24\n");
}

// Two stages a rank, a layer in each; the last stage holds a copy of the tied embedding.
TEST(CommTest, AnUpdateIsOfTheStageThatHoldsTheParameters) {
  Plan plan = SmallPlan(/*layers=*/4);
  for (PlanClass& c : plan.classes) {
    const Call step = c.update[0];
    for (const int layer : {kEmbeddingLayer, c.coordinate, c.coordinate + 2, c.coordinate * 4}) {
      c.update.push_back(step);
      c.update.back().layer = layer;
    }
    c.chunks.resize(2);
    for (const int i : {0, 1}) {
      Chunk chunk;
      chunk.stage = chunk.first_layer = c.coordinate + 2 * i;
      chunk.num_layers = 1;
      chunk.has_embedding = chunk.stage == 0;
      chunk.has_head = chunk.stage == 3;
      c.chunks[static_cast<size_t>(i)] = chunk;
    }
  }
  std::string update;
  for (const CommEntry& entry : CommEntries(plan)) {
    if (entry.phase == "update") absl::StrAppend(&update, Line(entry), "\n");
  }
  EXPECT_EQ(update,
            "0 update - all-reduce tp norm 2 24 24\n"
            "0 update 0 all-reduce tp norm 2 24 24\n"
            "1 update - all-reduce tp norm 1 24 24\n"
            "1 update 1 all-reduce tp norm 1 24 24\n"
            "2 update 2 all-reduce tp norm 1 24 24\n"
            "3 update - all-reduce tp norm 2 24 24\n"
            "3 update 3 all-reduce tp norm 1 24 24\n");
}

TEST(CommTest, Json) {
  const JsonValue root = Parsed(CommJson(SmallPlan()));
  const JsonValue* entries = root.Find("entries");
  ASSERT_NE(entries, nullptr);
  ASSERT_EQ(entries->items.size(), CommEntries(SmallPlan()).size());
  const JsonValue& first = entries->items[0];
  std::string keys;
  for (const JsonMember& member : first.members) absl::StrAppend(&keys, member.key, " ");
  EXPECT_EQ(keys, "stage phase layer op group label count payload_bytes wire_bytes ");
  EXPECT_EQ(first.Find("layer")->kind, JsonValue::Kind::kNull);
  EXPECT_EQ(entries->items[1].Find("layer")->integer, 0);
  EXPECT_EQ(first.Find("payload_bytes")->integer, 512);
}

TEST(CommTest, TextJoinsLayers) {
  const std::string text = CommText(SmallPlan(/*layers=*/8), /*all=*/true);
  EXPECT_TRUE(absl::StrContains(text, "layers 0-3  all-reduce")) << text;
  EXPECT_TRUE(absl::StrContains(text, "layers 4-7  all-reduce")) << text;
  EXPECT_FALSE(absl::StrContains(text, "layer 1 ")) << text;
  // 4 micro-batches of 4 + 1 forward, 4 backward all-reduces, a maximum and a send; the update.
  EXPECT_TRUE(absl::StrContains(text, "stage 0: 22.1 KiB sent")) << text;
}

// What a line of the table tells, unfolded, is what the entries are.
TEST(CommTest, FoldsStagesThatCommunicateAlike) {
  const std::string text = CommText(SmallPlan(/*layers=*/8));
  EXPECT_TRUE(absl::StrContains(text, " 0-1  forward   layers 0-7  all-reduce")) << text;
  EXPECT_TRUE(absl::StrContains(text, " 0-1  update                reduce-scatter")) << text;
  EXPECT_TRUE(absl::StrContains(text, "   0  forward               send")) << text;
  EXPECT_TRUE(absl::StrContains(text, "   1  forward               recv")) << text;
  EXPECT_FALSE(absl::StrContains(text, "layers 0-3")) << text;
}

TEST(CommTest, AStageThatDiffersHasARowOfItsOwn) {
  Plan plan = SmallPlan(/*layers=*/8);
  plan.classes[1].chunks[0].forward.erase(plan.classes[1].chunks[0].forward.begin() + 1);
  const std::string text = CommText(plan);
  EXPECT_TRUE(absl::StrContains(text, "layers 0-4, 6-7  all-reduce")) << text;
}

TEST(RepeatsTest, FindsLoopsAndLosesNothing) {
  std::vector<ScheduleEntry> entries = {{"0F", 0}, {"0F", 1}};
  for (int64_t i = 0; i < 6; ++i) {
    entries.push_back({"0F", i + 2});
    entries.push_back({"0B", i});
  }
  entries.push_back({"U", -1});
  const std::vector<Loop> loops = FindLoops(entries);
  EXPECT_EQ(ToString(loops), "3 x (0F0) +1 5 x (0B0 0F3) +1 0B5 U");
  std::vector<std::string> unrolled;
  for (const Loop& loop : loops) {
    for (int64_t i = 0; i < loop.times; ++i) {
      for (ScheduleEntry entry : loop.entries) {
        if (entry.micro_batch >= 0) entry.micro_batch += i * loop.shift;
        unrolled.push_back(ToString(entry));
      }
    }
  }
  std::vector<std::string> expected;
  expected.reserve(entries.size());
  for (const ScheduleEntry& entry : entries) expected.push_back(ToString(entry));
  EXPECT_EQ(unrolled, expected);
  EXPECT_TRUE(FindLoops({}).empty());
}

TEST(ScheduleTest, RowsOfAPlanHoldTransfers) {
  const ScheduleRows rows = RowsOf(SmallPlan());
  EXPECT_EQ(ScheduleCsv(rows),
            "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0SEND_F2,0RECV_B1,0B1,0F3,0SEND_F3,"
            "0RECV_B2,0B2,0RECV_B3,0B3,U\n"
            "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1,1RECV_F2,1F2,1B2,1SEND_B2,"
            "1RECV_F3,1F3,1B3,1SEND_B3,U\n");
  const JsonValue root = Parsed(ScheduleJson(rows));
  ASSERT_EQ(root.Find("ranks")->items.size(), 2);
  EXPECT_EQ(root.Find("ranks")->items[0].items[1].text, "0SEND_F0");
}

TEST(ScheduleTest, LongLinesAreFolded) {
  const ScheduleRows few = RowsOf(*BuildSchedule({ScheduleKind::kOneFOneB, 2, 1, 2, 0}));
  EXPECT_EQ(ScheduleText(few, /*all=*/false), ScheduleCsv(few));
  const ScheduleRows many = RowsOf(*BuildSchedule({ScheduleKind::kOneFOneB, 8, 1, 64, 0}));
  EXPECT_EQ(ScheduleText(many, /*all=*/true), ScheduleCsv(many));
  const std::string folded = ScheduleText(many, /*all=*/false);
  EXPECT_TRUE(absl::StrContains(folded, "pp 0-5 (p = pp): {8-p} x ({p}F0) +1 ")) << folded;
  EXPECT_TRUE(absl::StrContains(folded, "pp 7: 64 x (7F0 7B0) +1\n")) << folded;
}

TEST(ScheduleTest, RowsOfAScheduleAreItsActions) {
  const PipelineSchedule schedule = *BuildSchedule({ScheduleKind::kOneFOneB, 2, 1, 2, 0});
  EXPECT_EQ(ScheduleCsv(RowsOf(schedule)), "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
}

TEST(GroupsTest, JsonHasMegatronsKinds) {
  ParallelConfig config;
  config.world_size = 8;
  config.tp = 2;
  config.pp = 2;
  const JsonValue root = Parsed(GroupsJson(*BuildRankGroups(config)));
  std::string keys;
  for (const JsonMember& member : root.members) absl::StrAppend(&keys, member.key, " ");
  EXPECT_EQ(keys, "tp cp dp pp tp-cp tp-dp tp-pp dp-cp tp-dp-cp embedding position-embedding ");
  EXPECT_EQ(root.Find("tp")->items[3].items[1].integer, 7);
  EXPECT_EQ(GroupsJson(*BuildRankGroups(ConfigOfMesh(SmallPlan().mesh))),
            GroupsJson(*BuildRankGroups(config)));
}

TEST(GroupsTest, LongListsAreFolded) {
  ParallelConfig config;
  config.world_size = 1024;
  config.tp = 8;
  config.pp = 4;
  const std::vector<RankGroupKind> kinds = *BuildRankGroups(config);
  const std::string text = GroupsText(kinds);
  EXPECT_TRUE(absl::StrContains(text, "128              8  128 x ([0-7]) +8\n")) << text;
  EXPECT_TRUE(absl::StrContains(text, "4 x (8 x ([0-248 by 8]) +1) +256\n")) << text;
  EXPECT_TRUE(absl::StrContains(text, "256 x ([0-768 by 256]) +1\n")) << text;
  EXPECT_TRUE(absl::StrContains(GroupsText(kinds, /*all=*/true), " [1016 1017 1018 1019 1020 "));
  config.world_size = 8;
  config.tp = 2;
  config.pp = 2;
  EXPECT_TRUE(absl::StrContains(GroupsText(*BuildRankGroups(config)), "[0 1] [2 3] [4 5] [6 7]"));
}

TEST(GroupsTest, SpecOfASplitMesh) {
  const Mesh mesh = *Mesh::FromOrder("tp-pp-dp", {{"tp", 4}, {"pp", 2}, {"dp", 3}});
  const ParallelConfig config = ConfigOfMesh(*mesh.Split("tp", {2, 2}));
  EXPECT_EQ(config.tp, 4);
  EXPECT_EQ(config.order, "tp-pp-dp");
  EXPECT_EQ(config.world_size, 24);
}

TEST(InstructionsTest, SegmentsOnceAndCallsCounted) {
  const std::string text = InstructionsText(SmallPlan(/*layers=*/8));
  EXPECT_TRUE(
      absl::StrContains(text, "start 0: all-reduce g over tp, 512 B: %y.owed -> %y\n  wait 0\n"))
      << text;
  EXPECT_TRUE(absl::StrContains(text, "= matmul(%x, %layers.*.w)")) << text;
  EXPECT_TRUE(absl::StrContains(text, "stage 0 forward: embedding.forward layer.forward x4\n"))
      << text;
  const std::vector<std::string> pieces = absl::StrSplit(text, "segment layer.forward(");
  EXPECT_EQ(pieces.size(), 2);
  const JsonValue root = Parsed(InstructionsJson(SmallPlan(8)));
  EXPECT_EQ(root.Find("segments")->items.size(), 8);
  const JsonValue& chunk = root.Find("classes")->items[1].Find("chunks")->items[0];
  EXPECT_EQ(chunk.Find("forward")->items[0].Find("calls")->integer, 4);
  EXPECT_EQ(chunk.Find("backward")->items[1].Find("first_layer")->integer, 7);
}

TEST(ShowTest, SaysHowParametersLie) {
  const Plan plan = SmallPlan();
  EXPECT_EQ(CutOf(plan.blocks[0].entries[0], plan.mesh), "mlp over tp");
  EXPECT_EQ(CutOf(plan.blocks[0].entries[1], plan.mesh), "mlp over tp");
  EXPECT_EQ(ParameterCount(plan), 2 * 2 * 16 * 64);
  EXPECT_DOUBLE_EQ(IdealBubble(plan), 0.25);
  const std::string text = ShowText(plan);
  EXPECT_TRUE(absl::StrContains(text, "mesh @m [tp=2, dp=2, pp=2]: 8 ranks")) << text;
  EXPECT_TRUE(absl::StrContains(text, "1.5 ms predicted, pipeline bubble at least 25.0 %")) << text;
  EXPECT_TRUE(absl::StrContains(text, "cut over dp")) << text;
  EXPECT_TRUE(absl::StrContains(text, "embedding, layer 0")) << text;
}

TEST(ShowTest, SaysWhatEveryAxisCutsAndWhy) {
  const Mesh mesh = *Mesh::Create({{"tp", 2}, {"dp", 4}, {"pp", 2}});
  const std::string row = "row * { mlp -> tp }";
  const std::vector<AxisUse> uses = {
      {"tp", AxisEffect::kCuts, ValueKind::kParameters, "mlp", row, 2, {"layers.*.up"}, 0},
      {"tp", AxisEffect::kKeeps, ValueKind::kActivations, "mlp", row + ", but why", 1, {"a"}, 0},
      {"tp", AxisEffect::kLeaves, ValueKind::kParameters, "", "no row", 9, {"b", "c"}, 7},
      {"dp", AxisEffect::kSums, ValueKind::kGradients, "", "row * { batch -> dp }", 2, {"d"}, 0},
      {"dp", AxisEffect::kStores, ValueKind::kStates, "", "store states -> dp", 4, {"e"}, 0}};
  EXPECT_EQ(AxesText(mesh, 2, uses, /*all=*/true),
            "axis tp, 2 ranks\n"
            "  cuts mlp of 2 parameters, by row * { mlp -> tp }: layers.*.up\n"
            "  keeps mlp of 1 activation whole, asked by row * { mlp -> tp }, but why: a\n"
            "  leaves 9 parameters whole, no row: b, c and 7 more\n"
            "axis dp, 4 ranks\n"
            "  leaves a sum owed by 2 gradients, by row * { batch -> dp }: d\n"
            "  stores 4 states in pieces, by store states -> dp: e\n"
            "axis pp, 2 ranks\n"
            "  cuts the step into 2 stages\n");
  std::vector<AxisUse> more = uses;
  more.push_back({"tp", AxisEffect::kCuts, ValueKind::kGradients, "mlp", row, 2, {"f"}, 0});
  more.push_back({"tp", AxisEffect::kCuts, ValueKind::kGradients, "mlp", "", 3, {"g"}, 0});
  more.push_back({"tp", AxisEffect::kCuts, ValueKind::kStates, "mlp", "a pin", 1, {"h"}, 0});
  const std::string folded = AxesText(mesh, 2, more);
  EXPECT_TRUE(absl::StrContains(folded,
                                "  cuts mlp of 2 parameters, 5 gradients, by row * { mlp -> tp }: "
                                "layers.*.up\n"))
      << folded;
  EXPECT_TRUE(absl::StrContains(folded, "  cuts mlp of 1 state, by a pin: h\n")) << folded;
  EXPECT_EQ(AxesText(mesh, 2, std::vector<AxisUse>()), "");
  EXPECT_EQ(AxesText(mesh, 2, absl::FailedPreconditionError("it was edited")),
            "axes: not told, for it was edited\n");
  JsonWriter json;
  json.BeginObject();
  WriteAxes(mesh, uses, &json);
  json.EndObject();
  const JsonValue root = Parsed(std::move(json).Finish());
  ASSERT_EQ(root.Find("axes")->items.size(), 3);
  const JsonValue& kept = root.Find("axes")->items[0].Find("uses")->items[1];
  EXPECT_EQ(kept.Find("effect")->text, "keeps");
  EXPECT_EQ(kept.Find("values")->text, "activations");
  EXPECT_EQ(kept.Find("by")->text, row + ", but why");
}

TEST(ShowTest, SaysWhereTheForwardPassIsCut) {
  const Plan plan = SmallPlan();
  const std::string text = ShowText(plan);
  EXPECT_TRUE(absl::StrContains(text, "cut behind stage  sent per micro-batch")) << text;
  const JsonValue root = Parsed(ShowJson(plan));
  ASSERT_EQ(root.Find("cuts")->items.size(), 1u);
  const JsonValue& cut = root.Find("cuts")->items[0];
  EXPECT_EQ(cut.Find("behind_stage")->integer, 0);
  EXPECT_EQ(cut.Find("bytes")->integer, 512);
}

TEST(ShowTest, StagesThatAreAlikeAreOneRow) {
  Plan plan = SmallPlan(/*layers=*/8);
  for (PlanClass& plan_class : plan.classes) {
    plan_class.chunks[0].has_embedding = plan_class.chunks[0].has_head = false;
    plan_class.chunks[0].frame_bytes = 4096;
  }
  const std::string text = ShowText(plan);
  EXPECT_TRUE(absl::StrContains(text, "0-1  0-1  layers 0-7  4 each")) << text;
  const std::string all = ShowText(plan, /*all=*/true);
  EXPECT_TRUE(absl::StrContains(all, "    1   1  layers 4-7       4")) << all;
  plan.classes[1].chunks[0].frame_bytes = 8192;
  EXPECT_TRUE(absl::StrContains(ShowText(plan), "    1   1  layers 4-7       4"));
}

TEST(ShowTest, Json) {
  const JsonValue root = Parsed(ShowJson(SmallPlan()));
  EXPECT_EQ(root.Find("world_size")->integer, 8);
  EXPECT_EQ(root.Find("stages")->items[1].Find("first_layer")->integer, 1);
  EXPECT_TRUE(root.Find("stages")->items[1].Find("head")->boolean);
  EXPECT_EQ(root.Find("parameters")->items[0].Find("times")->integer, 2);
  EXPECT_EQ(root.Find("options")->Find("--tp")->text, "2");
}

// A class that tp cuts, one with a size that it does not divide, one that is refused.
TEST(DimsTest, SizesAndRefusals) {
  std::vector<ClassChoice> classes(3);
  classes[0] = {"up#1", {"up#1"}, {64}, 4096, true, {2048, 1500}, absl::OkStatus()};
  classes[1] = {"wide", {"wide"}, {36, 64}, 1024, false, {}, absl::OkStatus()};
  classes[2] = {"in#0", {"in#0"}, {8}, 512, true, {}, absl::FailedPreconditionError("slow [S4]")};
  EXPECT_EQ(DimsText({4096, 2000}, classes),
            "class     size  parameters  on a rank, cut over tp  predicted step\n"
            "(none)       -           -                 4.0 KiB            2 us\n"
            "up#1        64     4.0 KiB                 2.0 KiB          1.5 us\n"
            "wide    36, 64     1.0 KiB   tp does not divide it               -\n"
            "in#0         8       512 B                 refused               -\n"
            "in#0: slow [S4]\n");
  const JsonValue root = Parsed(DimsJson({4096, 2000}, classes));
  const std::vector<JsonValue>& items = root.Find("classes")->items;
  ASSERT_EQ(items.size(), 3);
  EXPECT_EQ(items[1].Find("sizes")->items.size(), 2);
  EXPECT_EQ(items[1].Find("refused"), nullptr);
  EXPECT_EQ(items[2].Find("refused")->text, "slow [S4]");
  EXPECT_EQ(items[2].Find("step_ns"), nullptr);
  EXPECT_NE(items[0].Find("step_ns"), nullptr);
}

}  // namespace
}  // namespace mgc
