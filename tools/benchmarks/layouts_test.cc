#include "tools/benchmarks/layouts.h"

#include "absl/strings/match.h"
#include "graph/base/json.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

Timings Side(const std::string& flags, double predicted, std::vector<double> seconds,
             std::vector<double> cpu_seconds) {
  Timings side{flags, std::move(seconds), std::move(cpu_seconds), {}, ""};
  side.profile.predicted_seconds = predicted;
  return side;
}

// Of two workers. By CPU time all steps of a layout are alike.
LayoutReport Example() {
  LayoutReport report{"tiny", 4, 2, "AVX2", {}};
  report.result.title = "layouts, 16 x 128 tokens a step";
  report.result.tokens = 2048;
  report.result.sides = {Side("--tp 2", 0.30, {0.4, 0.25, 0.28, 0.3}, {0.5, 0.5, 0.5, 0.5}),
                         Side("--pp 2", 0.21, {0.2, 0.2, 0.2, 0.9}, {0.4, 0.4, 0.4, 0.4})};
  return report;
}

TEST(LayoutsTest, TheFastestStepCountsAndItsHalvesSayTheSpread) {
  const PredictedTime time = StepTimeOf(Example().result.sides[0], 2);
  EXPECT_EQ(time.predicted, 0.30);
  EXPECT_EQ(time.measured, 0.25);
  EXPECT_NEAR(time.spread, 0.03, 1e-12);
  EXPECT_EQ(StepTimeOf(Side("", 1, {0.4}, {0.4}), 2).spread, 0);
  EXPECT_NEAR(StepTimeOf(Side("", 1, {0.4, 0.6, 0.3}, {1, 1, 1}), 2).spread, 0.3, 1e-12);
  const PredictedTime busy = BusyTimeOf(Example().result.sides[0], 2);
  EXPECT_EQ(busy.measured, 0.25);
  EXPECT_EQ(busy.spread, 0);
}

TEST(LayoutsTest, ATableOfTheFastestFirst) {
  EXPECT_EQ(LayoutsText(Example()), R"(tiny, 4 layers, 2 workers, AVX2

layouts, 16 x 128 tokens a step
  predicted  measured     ratio   spread    by CPU     ratio  flags
      210.0     200.0   105.0 %    0.0 %     200.0   105.0 %  --pp 2
      300.0     250.0   120.0 %   12.0 %     250.0   120.0 %  --tp 2
  measured: rank correlation unknown, 1 of 1 pairs tied; off by 12.5 % on average, at worst 20.0 %
  by CPU time: rank correlation 1.000, 0 of 1 pairs tied; off by 12.5 % on average, at worst 20.0 %
)");
}

TEST(LayoutsTest, OneJsonObject) {
  const absl::StatusOr<JsonValue> json = ParseJson(LayoutsJson(Example()), "layouts");
  ASSERT_TRUE(json.ok()) << json.status();
  const JsonValue& first = json->Find("layouts")->items[0];
  EXPECT_EQ(first.Find("flags")->text, "--pp 2");
  EXPECT_EQ(first.Find("seconds")->items.size(), 4u);
  EXPECT_EQ(first.Find("busy_seconds")->number, 0.2);
  EXPECT_EQ(json->Find("measured")->Find("tied_pairs")->number, 1);
  EXPECT_EQ(json->Find("by_cpu_time")->Find("rank_correlation")->number, 1);
}

// Some steps of each, of narrow layers: that they compile and train the same batch.
TEST(LayoutsTest, EveryLayoutTrains) {
  BenchSetting setting;
  setting.model = DefaultLayoutModel().value().config;
  setting.workers = 2;
  setting.machine = FindMachinePreset("cpu-threads").value();
  setting.machine.cores = setting.workers;
  setting.model.hidden = setting.model.ffn = 64;
  setting.model.head_dim = setting.model.hidden / setting.model.heads;
  const Comparison comparison = LayoutComparison(setting);
  EXPECT_GE(comparison.sides.size(), 12u);
  const absl::StatusOr<ComparisonResult> result = Compare(comparison, 1);
  ASSERT_TRUE(result.ok()) << result.status();
  for (const Timings& side : result->sides) {
    EXPECT_GT(StepTimeOf(side, 2).predicted, 0) << side.name;
    EXPECT_GT(StepTimeOf(side, 2).measured, 0) << side.name;
  }
}

}  // namespace
}  // namespace mgc
