#include "tools/benchmarks/report.h"

#include "absl/strings/match.h"
#include "graph/base/json.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

BenchReport Example() {
  ComparisonResult result;
  result.name = "one-rank";
  result.title = "one rank, 4 x 25 tokens";
  result.tokens = 100;
  result.sides = {
      {"products", {2, 2, 2}, {4, 6, 4}, {}, ""},
      {"f32", {4, 4, 5}, {6, 6, 6}, {{{"matmul", 6, 10}, {"add", 1, 5}}, 4.5, 2048}, ""},
      {"bf16", {2, 4, 1}, {8, 8, 8}, {{{"matmul", 2, 80}}, 3, 1024}, ""},
      {"packed", {}, {}, {}, "no such instruction"}};
  result.sides[1].profile.predicted_seconds = 4.2;
  result.sides[2].profile.predicted_seconds = 3;
  result.claims = {{{1}, {0}, 0.6}, {{1}, {0}, 0.4}, {{2}, {1}, 1.5}, {{1}, {3}, 1}};
  result.memory_claims = {{2, 1, 0.6}};
  return {"tiny", 2, 2, "AVX2", {result}};
}

TEST(Report, SaysWhatIsReached) {
  const std::string text = ReportText(Example());
  EXPECT_TRUE(
      absl::StrContains(text, "f32: 50.0 % of products (45.0 to 50.0; at least 60 %: missed)"))
      << text;
  EXPECT_TRUE(absl::StrContains(text, "at least 40 %: reached), 66.7 % by CPU time")) << text;
  EXPECT_TRUE(
      absl::StrContains(text, "bf16: 200.0 % of f32 (150.0 to 350.0; at least 150 %: too noisy)"))
      << text;
}

TEST(Report, SaysWhatIsMissingAndWhatMemoryIsNeeded) {
  const std::string text = ReportText(Example());
  EXPECT_TRUE(absl::StrContains(text, "packed                           no such instruction"))
      << text;
  EXPECT_TRUE(absl::StrContains(text, "tokens/s, 2.0 KiB")) << text;
  EXPECT_TRUE(absl::StrContains(text, "bf16: 50 % of the memory of f32 (at most 60 %: reached)"))
      << text;
}

TEST(Report, SaysWhatWasPredicted) {
  const std::string text = ReportText(Example());
  EXPECT_TRUE(
      absl::StrContains(text, "f32: predicted 4200 ms, 105.0 % of what it took (within 10 %)"))
      << text;
  EXPECT_TRUE(absl::StrContains(
      text, "bf16: predicted 3000 ms, 150.0 % of what it took (more than 10 % off)"))
      << text;
  EXPECT_FALSE(absl::StrContains(text, "products: predicted")) << text;
}

TEST(Report, SaysWhereTheTimeGoes) {
  const std::string text = ReportText(Example());
  EXPECT_TRUE(absl::StrContains(text, "matmul                        3000.0    1000.0")) << text;
  EXPECT_TRUE(absl::StrContains(text, "rest: waiting, zeroing        1000.0    2000.0")) << text;
}

TEST(Report, IsOneJsonObject) {
  const absl::StatusOr<JsonValue> json = ParseJson(ReportJson(Example()), "report");
  ASSERT_TRUE(json.ok()) << json.status();
  const JsonValue& comparison = json->Find("comparisons")->items[0];
  EXPECT_EQ(comparison.Find("sides")->items[1].Find("tokens_per_second")->number, 25);
  EXPECT_EQ(comparison.Find("sides")->items[1].Find("core_seconds")->Find("matmul")->number, 6);
  EXPECT_EQ(comparison.Find("sides")->items[1].Find("predicted_seconds")->number, 4.2);
  EXPECT_EQ(comparison.Find("sides")->items[0].Find("predicted_seconds"), nullptr);
  EXPECT_EQ(comparison.Find("sides")->items[3].Find("tokens_per_second"), nullptr);
  EXPECT_EQ(comparison.Find("findings")->items[0].Find("ratio")->number, 0.5);
  EXPECT_EQ(comparison.Find("findings")->items.size(), 3);
}

}  // namespace
}  // namespace mgc
