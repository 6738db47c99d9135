#include "passes/search/class_layout.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "graph/types/machine.h"
#include "gtest/gtest.h"
#include "passes/graph/dim_classes.h"
#include "passes/plan/testing/text_graph.h"

namespace mgc {
namespace {

// An MLP-mixer of two layers that names no dim.
constexpr char kMixer[] = R"(graph @mixer layers=2 (
  param %embed.w: f32[48,64] {init="normal", std=0.1},
  param %layers.0.tok.up: f32[16,32] {init="normal", std=0.2},
  param %layers.0.tok.down: f32[32,16] {init="normal", std=0.2},
  param %layers.0.ch.up: f32[64,256] {init="normal", std=0.2},
  param %layers.0.ch.down: f32[256,64] {init="normal", std=0.2},
  param %layers.1.tok.up: f32[16,32] {init="normal", std=0.2},
  param %layers.1.tok.down: f32[32,16] {init="normal", std=0.2},
  param %layers.1.ch.up: f32[64,256] {init="normal", std=0.2},
  param %layers.1.ch.down: f32[256,64] {init="normal", std=0.2},
  param %head.w: f32[64,10] {init="normal", std=0.2},
  data %patches: f32[8,16,48],
  data %labels: f32[8,10],
  data %weights: f32[8]
) {
  %x0 = matmul(%patches, %embed.w) {spec="b p i, i c -> b p c"} layer embedding
  %t0 = matmul(%x0, %layers.0.tok.up) {spec="b p c, p t -> b t c"} layer 0
  %g0 = gelu(%t0) layer 0
  %d0 = matmul(%g0, %layers.0.tok.down) {spec="b t c, t p -> b p c"} layer 0
  %y0 = add(%x0, %d0) layer 0
  %u0 = matmul(%y0, %layers.0.ch.up) {spec="b p c, c f -> b p f"} layer 0
  %h0 = gelu(%u0) layer 0
  %e0 = matmul(%h0, %layers.0.ch.down) {spec="b p f, f c -> b p c"} layer 0
  %x1 = add(%y0, %e0) layer 0
  %t1 = matmul(%x1, %layers.1.tok.up) {spec="b p c, p t -> b t c"} layer 1
  %g1 = gelu(%t1) layer 1
  %d1 = matmul(%g1, %layers.1.tok.down) {spec="b t c, t p -> b p c"} layer 1
  %y1 = add(%x1, %d1) layer 1
  %u1 = matmul(%y1, %layers.1.ch.up) {spec="b p c, c f -> b p f"} layer 1
  %h1 = gelu(%u1) layer 1
  %e1 = matmul(%h1, %layers.1.ch.down) {spec="b p f, f c -> b p c"} layer 1
  %x2 = add(%y1, %e1) layer 1
  %pool = reduce_sum(%x2) {dims=[1]} layer 2
  %out = matmul(%pool, %head.w) {spec="b c, c k -> b k"} layer 2
  %diff = sub(%out, %labels) layer 2
  %sq = mul(%diff, %diff) layer 2
  %rows = reduce_sum(%sq) {dims=[1]} layer 2
  %loss = weighted_sum(%rows, %weights) layer 2
  %count = total(%weights) layer 2
  loss "loss" = %loss
  report "count" = %count
})";

ModelDims DimsOf(const Graph& graph) {
  ModelDims dims;
  dims.layers = graph.num_layers();
  return dims;
}

CompileOptions OptionsOf(int64_t tp, int64_t dp) {
  CompileOptions options;
  options.parallel.tp = tp;
  options.parallel.world_size = tp * dp;
  options.parallel.micro_batch_size = 8 / dp;
  options.parallel.global_batch_size = 8;
  options.machine = *FindMachinePreset("h100x8");
  return options;
}

std::vector<std::string> NamesOf(const std::vector<ClassChoice>& choices) {
  std::vector<std::string> names;
  for (const ClassChoice& choice : choices) names.push_back(choice.name);
  return names;
}

TEST(ClassLayoutTest, ClassesOfParametersInTheOrderOfTheModel) {
  const Graph model = NameDims(ReadGraph(kMixer));
  const auto choices = ClassChoices(model, DimsOf(model), OptionsOf(4, 1));
  ASSERT_TRUE(choices.ok()) << choices.status();
  EXPECT_EQ(absl::StrJoin(NamesOf(*choices), " "),
            "embed.w#0 embed.w#1 layers.*.tok.up#0 layers.*.tok.up#1 layers.*.ch.up#1 head.w#1");
  const ClassChoice& hidden = (*choices)[4];
  EXPECT_EQ(hidden.sizes, std::set<int64_t>{256});
  EXPECT_EQ(hidden.parameter_bytes, int64_t{4} * 2 * 2 * 64 * 256);
  EXPECT_TRUE(hidden.divides);
  EXPECT_FALSE((*choices)[5].divides);  // 10 over 4
  EXPECT_LT(hidden.alone.parameter_bytes, (*choices)[0].alone.parameter_bytes);
}

// Both hidden dims are cut, as Megatron cuts `mlp`.
TEST(ClassLayoutTest, AModelWithoutNamesIsCut) {
  const Graph model = NameDims(ReadGraph(kMixer));
  const CompileOptions options = OptionsOf(2, 1);
  EXPECT_FALSE(*CutsParameters(model, options.parallel, DefaultStrategy()));
  const auto layout = LayOutByClasses(model, DimsOf(model), options);
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_TRUE(*CutsParameters(model, options.parallel, layout->strategy));
  const auto choices = ClassChoices(model, DimsOf(model), options);
  EXPECT_LE(layout->cost.parameter_bytes, ParameterBudget(model, *choices, 2));
}

// Tables that place the inputs alike are compiled once: the order of two classes counts only where
// a value has dims of both.
TEST(ClassLayoutTest, TablesThatPlaceAlikeAreOne) {
  const Graph model = NameDims(ReadGraph(kMixer));
  const ModelDims dims = DimsOf(model);
  const CompileOptions options = OptionsOf(2, 1);
  LayoutCosts costs(model, dims, options);
  const auto cost = costs.Of({"embed.w#0", "layers.*.ch.up#1"});
  ASSERT_TRUE(cost.ok()) << cost.status();
  ASSERT_TRUE(costs.Of({"layers.*.ch.up#1", "embed.w#0"}).ok());
  EXPECT_EQ(costs.compiled(), 1u);
  // `ch.up` has both, and is cut over the first.
  ASSERT_TRUE(costs.Of({"embed.w#1", "layers.*.ch.up#1"}).ok());
  ASSERT_TRUE(costs.Of({"layers.*.ch.up#1", "embed.w#1"}).ok());
  EXPECT_EQ(costs.compiled(), 3u);
  const auto again = CostOf(model, dims, options, ClassStrategy({"layers.*.ch.up#1", "embed.w#0"}));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->step_ns, cost->step_ns);
  EXPECT_EQ(again->parameter_bytes, cost->parameter_bytes);
}

// Rows speak of names, and a class may have two: both are cut, or one weight of a pair would stay
// whole.
TEST(ClassLayoutTest, AClassIsCutByAllItsNames) {
  const Graph model = ReadGraph(R"(graph @g logical (
    param %up: f32[embed=64,wide=256] {init="normal", std=0.2},
    param %down: f32[mlp=256,embed=64] {init="normal", std=0.2},
    data %x: f32[batch=8,embed=64],
    data %weights: f32[batch=8]
  ) {
    %h = matmul(%x, %up) {spec="b e, e f -> b f"}
    %g = gelu(%h)
    %y = matmul(%g, %down) {spec="b f, f e -> b e"}
    %loss = sum_squares(%y)
    %count = total(%weights)
    loss %loss weight 1.0
    report "count" = %count
  })");
  const auto choices = ClassChoices(model, DimsOf(model), OptionsOf(2, 1));
  ASSERT_TRUE(choices.ok()) << choices.status();
  EXPECT_EQ(absl::StrJoin(NamesOf(*choices), " "), "embed wide");
  EXPECT_EQ((*choices)[1].parameter_bytes, int64_t{4} * 2 * 64 * 256);
  EXPECT_EQ((*choices)[1].alone.parameter_bytes, int64_t{4} * 64 * 256);
}

// Blocks that only their numbers tell apart, in a graph without layers: one choice for all of them.
TEST(ClassLayoutTest, WhatNumbersTellApartIsChosenTogether) {
  constexpr int kBlocks = 26;
  std::string params;
  std::string nodes;
  for (int i = 0; i < kBlocks; ++i) {
    const std::string block = absl::StrCat("%h.", i);
    absl::StrAppend(&params, "param ", block, ".up: f32[256,1024] {init=\"normal\", std=0.2},\n");
    absl::StrAppend(&params, "param ", block, ".down: f32[1024,256] {init=\"normal\", std=0.2},\n");
    absl::StrAppend(&nodes, block, ".a = matmul(%x", i, ", ", block,
                    ".up) {spec=\"b e, e f -> b f\"}\n", block, ".g = gelu(", block, ".a)\n%x",
                    i + 1, " = matmul(", block, ".g, ", block,
                    ".down) {spec=\"b f, f e -> b e\"}\n");
  }
  const Graph model = NameDims(ReadGraph(absl::StrCat(
      "graph @g logical (", params, "data %x0: f32[batch=8,256],\ndata %weights: f32[batch=8]) {\n",
      nodes, "%loss = sum_squares(%x", kBlocks, ")\n%count = total(%weights)\n",
      "loss %loss weight 1.0\nreport \"count\" = %count\n}")));
  const auto layout = LayOutByClasses(model, DimsOf(model), OptionsOf(2, 1));
  ASSERT_TRUE(layout.ok()) << layout.status();
  std::vector<std::string> cut;
  for (const DimAxes& dim : layout->strategy.rows[0].dims) cut.push_back(dim.dim);
  ASSERT_EQ(cut.size(), 1u + kBlocks) << absl::StrJoin(cut, " ");
  for (int i = 0; i < kBlocks; ++i) {
    EXPECT_EQ(cut[static_cast<size_t>(i) + 1], absl::StrCat("h.", i, ".up#1"));
  }
}

// A hundred products in a row of parameters whose numbers stand for no layer, no part of a name
// between dots: all of them are cut.
TEST(ClassLayoutTest, NumbersWithinNamesAreNumbersToo) {
  constexpr int kProducts = 100;
  std::string params;
  std::string nodes;
  for (int i = 0; i < kProducts; ++i) {
    absl::StrAppend(&params, "param %block_", i, "/w", i, ": f32[64,64] {init=\"normal\"},\n");
    absl::StrAppend(&nodes, "%x", i + 1, " = matmul(%x", i, ", %block_", i, "/w", i,
                    ") {spec=\"b e, e f -> b f\"}\n");
  }
  const Graph model = NameDims(ReadGraph(absl::StrCat(
      "graph @g logical (", params, "data %x0: f32[batch=8,64],\ndata %weights: f32[batch=8]) {\n",
      nodes, "%loss = sum_squares(%x", kProducts, ")\n%count = total(%weights)\n",
      "loss %loss weight 1.0\nreport \"count\" = %count\n}")));
  const auto layout = LayOutByClasses(model, DimsOf(model), OptionsOf(2, 1));
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_LE(layout->cost.parameter_bytes, layout->budget);
  EXPECT_EQ(layout->cost.parameter_bytes, int64_t{4} * kProducts * 64 * 64 / 2);
  EXPECT_LE(layout->plans, 8u);
  EXPECT_FALSE(layout->cut_short);
}

// Two plans are too few for the six classes: the budget is kept all the same, by the full list.
TEST(ClassLayoutTest, AMostOfPlansIsSaidAndKeepsTheBudget) {
  const Graph model = NameDims(ReadGraph(kMixer));
  const auto layout = LayOutByClasses(model, DimsOf(model), OptionsOf(2, 1), {2, 100});
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_TRUE(layout->cut_short);
  EXPECT_EQ(layout->plans, 2u);
  EXPECT_LE(layout->cost.parameter_bytes, layout->budget);
}

// A U-Net whose levels differ in width: `layers.*.up#1` is of 64 in one and of 36 in the other.
Graph TwoWidths(int first, int second) {
  return NameDims(ReadGraph(absl::StrCat(R"(graph @g logical layers=2 (
    param %layers.0.up: f32[16,)",
                                         first, R"(] {init="normal", std=0.2},
    param %layers.0.down: f32[)",
                                         first, R"(,16] {init="normal", std=0.2},
    param %layers.1.up: f32[16,)",
                                         second, R"(] {init="normal", std=0.2},
    param %layers.1.down: f32[)",
                                         second, R"(,16] {init="normal", std=0.2},
    data %x: f32[8,16],
    data %weights: f32[8]
  ) {
    %a0 = matmul(%x, %layers.0.up) {spec="b e, e f -> b f"} layer 0
    %y0 = matmul(%a0, %layers.0.down) {spec="b f, f e -> b e"} layer 0
    %a1 = matmul(%y0, %layers.1.up) {spec="b e, e f -> b f"} layer 1
    %y1 = matmul(%a1, %layers.1.down) {spec="b f, f e -> b e"} layer 1
    %loss = sum_squares(%y1) layer 1
    %count = total(%weights) layer 1
    loss %loss weight 1.0
    report "count" = %count
  })")));
}

TEST(ClassLayoutTest, TpDividesAClassIfItDividesAllItsSizes) {
  for (const auto& [first, second] : {std::make_pair(64, 36), std::make_pair(36, 64)}) {
    SCOPED_TRACE(first);
    const Graph model = TwoWidths(first, second);
    const auto choices = ClassChoices(model, DimsOf(model), OptionsOf(8, 1));
    ASSERT_TRUE(choices.ok()) << choices.status();
    const auto wide = std::find_if(choices->begin(), choices->end(),
                                   [](const ClassChoice& c) { return c.name == "layers.*.up#1"; });
    ASSERT_NE(wide, choices->end());
    EXPECT_EQ(wide->sizes, (std::set<int64_t>{36, 64}));
    EXPECT_FALSE(wide->divides);
    // Of a class that tp cannot cut no bytes can go: all parameters have another one.
    const int64_t whole = int64_t{4} * 2 * 16 * (64 + 36);
    EXPECT_EQ(ParameterBudget(model, *choices, 8), whole * 11 / 80);
    const auto layout = LayOutByClasses(model, DimsOf(model), OptionsOf(8, 1));
    ASSERT_TRUE(layout.ok()) << layout.status();
    EXPECT_EQ(layout->cost.parameter_bytes, whole / 8);
    const auto none = LayOutByClasses(model, DimsOf(model), OptionsOf(32, 1));
    EXPECT_EQ(std::string(none.status().message()),
              "tp 32 divides no dim of any parameter; there are: layers.*.up#0 of 16, "
              "layers.*.up#1 of 36 and 64, layers.*.down#1 of 16 [strategy_c5]; nearest legal: tp "
              "16, or --allow-replicated");
  }
}

// Over a network of a byte in a million seconds whatever communicates takes centuries.
TEST(ClassLayoutTest, AClassThatIsRefusedIsListedAsSuch) {
  const Graph model = NameDims(ReadGraph(kMixer));
  CompileOptions options = OptionsOf(2, 1);
  for (NetworkTier& tier : options.machine.tiers) tier.bandwidth = 1e-6;
  const auto choices = ClassChoices(model, DimsOf(model), options);
  ASSERT_TRUE(choices.ok()) << choices.status();
  ASSERT_EQ(choices->size(), 6u);
  EXPECT_TRUE(absl::IsFailedPrecondition((*choices)[4].refused)) << (*choices)[4].refused;
  EXPECT_EQ((*choices)[4].alone.step_ns, 0);
}

TEST(ClassLayoutTest, TpThatDividesNothingIsRefused) {
  const Graph model = NameDims(ReadGraph(kMixer));
  const auto layout = LayOutByClasses(model, DimsOf(model), OptionsOf(7, 1));
  ASSERT_FALSE(layout.ok());
  EXPECT_EQ(layout.status().message(),
            "tp 7 divides no dim of any parameter; there are: embed.w#0 of 48, embed.w#1 of 64, "
            "layers.*.tok.up#0 of 16, layers.*.tok.up#1 of 32, layers.*.ch.up#1 of 256, head.w#1 "
            "of 10 [strategy_c5]; nearest legal: tp 6, 8, or --allow-replicated");
}

TEST(ClassLayoutTest, WhereReplicationIsAllowedTpMayDivideNothing) {
  const Graph model = NameDims(ReadGraph(kMixer));
  CompileOptions options = OptionsOf(7, 1);
  options.parallel.allow_replicated = true;
  const auto layout = LayOutByClasses(model, DimsOf(model), options);
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_FALSE(*CutsParameters(model, options.parallel, layout->strategy));
  EXPECT_EQ(layout->cost.parameter_bytes, layout->budget);
}

}  // namespace
}  // namespace mgc
