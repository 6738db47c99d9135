#include "passes/search/home_rows.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "graph/types/machine.h"
#include "gtest/gtest.h"
#include "passes/config/strategy_text.h"
#include "passes/graph/dim_classes.h"
#include "passes/plan/testing/text_graph.h"

namespace mgc {
namespace {

// A norm, two functions of each element and an MLP, of many tokens.
constexpr char kMlp[] = R"(graph @mlp layers=1 (
  param %embed: f32[64,1024] {init="normal", std=0.1},
  param %scale: f32[1024] {init="ones"},
  param %up: f32[1024,4096] {init="normal", std=0.1},
  param %down: f32[4096,1024] {init="normal", std=0.1},
  data %x: f32[8,512,64],
  data %weights: f32[8]
) {
  %x0 = matmul(%x, %embed) {spec="b s i, i e -> b s e"} layer embedding
  %n, %r = rms_norm(%x0, %scale) {eps=1e-05} layer 0
  %a = silu(%n) layer 0
  %b = gelu(%a) layer 0
  %u = matmul(%b, %up) {spec="b s e, e f -> b s f"} layer 0
  %h = gelu(%u) layer 0
  %d = matmul(%h, %down) {spec="b s f, f e -> b s e"} layer 0
  %y = add(%x0, %d) layer 0
  %sq = mul(%y, %y) layer 1
  %rows = reduce_sum(%sq) {dims=[1,2]} layer 1
  %loss = weighted_sum(%rows, %weights) layer 1
  %count = total(%weights) layer 1
  loss "loss" = %loss
  report "count" = %count
})";

CompileOptions OptionsOf(int64_t tp) {
  CompileOptions options;
  options.machine = FindMachinePreset("h100x8").value();
  options.parallel.tp = options.parallel.world_size = tp;
  options.parallel.global_batch_size = options.parallel.micro_batch_size = 8;
  return options;
}

ModelDims DimsOf(const Graph& model) {
  ModelDims dims;
  dims.layers = model.num_layers();
  return dims;
}

TEST(HomeRowsTest, PatternsAreOfWhatSeveralRead) {
  const Graph model = NameDims(ReadGraph(kMlp));
  // %x0, %y: the stream; %u and %h are read once.
  ASSERT_EQ(SharedPatterns(model).size(), 1U);
  EXPECT_EQ(SharedPatterns(model)[0], (std::vector<std::string>{"batch", "x#1", "embed#1"}));
}

// The MLP cut over tp, and what is added to its row.
struct Trial {
  explicit Trial(int64_t tp, size_t most_plans)
      : model(NameDims(ReadGraph(kMlp))),
        options(OptionsOf(tp)),
        cost(CostOf(model, DimsOf(model), options, rows).value()),
        homes(AddHomeRows(model, DimsOf(model), options, rows, cost, most_plans)) {}

  const StrategySpec rows = ClassStrategy({"up#1"});
  const Graph model;
  const CompileOptions options;
  const LayoutCost cost;  // without
  const absl::StatusOr<HomeRows> homes;
};

// The stream is cut by tokens between the products.
TEST(HomeRowsTest, TheStreamIsCutWhereThatSavesTime) {
  const Trial trial(4, 100);
  const auto& [rows, model, options, cost, homes] = trial;
  ASSERT_TRUE(homes.ok()) << homes.status();
  EXPECT_LT(homes->cost.step_ns, cost.step_ns);
  EXPECT_EQ(homes->cost.parameter_bytes, cost.parameter_bytes);
  ASSERT_EQ(homes->strategy.rows.size(), rows.rows.size() + 1);
  EXPECT_TRUE(homes->strategy.rows.front().home);
  const std::string text = PrintStrategy(homes->strategy);
  EXPECT_TRUE(absl::StrContains(text, "home { \"x#1\" -> tp }")) << text;
  // As the user would type it.
  const auto again = ParseStrategy(text, "rows");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(CostOf(model, DimsOf(model), options, *again)->step_ns, homes->cost.step_ns);
}

TEST(HomeRowsTest, StaysWithinItsPlans) {
  const Trial none(4, 0);
  ASSERT_TRUE(none.homes.ok()) << none.homes.status();
  EXPECT_EQ(none.homes->plans, 0U);
  EXPECT_EQ(none.homes->strategy.rows.size(), none.rows.rows.size());
  // No token is left for each rank: tp divides no dim but the features.
  const Trial features(1024, 100);
  ASSERT_TRUE(features.homes.ok()) << features.homes.status();
  EXPECT_EQ(features.homes->plans, 1U);
}

}  // namespace
}  // namespace mgc
