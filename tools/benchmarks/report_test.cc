#include "tools/benchmarks/report.h"

#include "absl/strings/match.h"
#include "graph/base/json.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

TrainingReport Example() {
  TrainingReport report;
  report.model = "tiny";
  report.layers = 2;
  report.tokens = 100;
  report.workers = 2;
  report.product_flops = 4e9;
  report.products = {"products", {2, 3, 2}, {4, 6, 4}, {}, 0, 0};
  report.one_rank = {"one rank", {4, 4, 5}, {6, 6, 6}, {{"matmul", 6, 10}, {"add", 1, 5}},
                     4.5,        1000};
  report.eight_ranks = {"eight ranks", {5, 8, 5}, {8, 8, 8}, {{"matmul", 7, 80}}, 6, 500};
  return report;
}

TEST(Median, IsTheMiddle) {
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(Median({5, 1, 3}), 3);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);
}

TEST(Report, ComparesNeighboursInTime) {
  const TrainingReport report = Example();
  EXPECT_EQ(report.of_products(), 0.5);  // of 2/4, 3/4, 2/5
  EXPECT_DOUBLE_EQ(report.loss(), 0.2);  // of 4/5, 4/8, 5/5
}

TEST(Report, SaysWhatIsReached) {
  const std::string text = ReportText(Example());
  EXPECT_TRUE(absl::StrContains(text, "reaches 50.0 % of what they allow (at least 60 %: missed)"))
      << text;
  EXPECT_TRUE(absl::StrContains(text, "eight ranks lose 20.0 % (at most 25 %: reached), 25.0 % by"))
      << text;
  EXPECT_TRUE(absl::StrContains(text, "matmul                        3000.0    3500.0")) << text;
  EXPECT_TRUE(absl::StrContains(text, "rest: waiting, zeroing        1000.0    2500.0")) << text;
}

TEST(Report, IsOneJsonObject) {
  const absl::StatusOr<JsonValue> json = ParseJson(ReportJson(Example()), "report");
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(json->Find("of_products")->number, 0.5);
  const JsonValue* eight = json->Find("eight_ranks");
  ASSERT_NE(eight, nullptr);
  EXPECT_EQ(eight->Find("tokens_per_second")->number, 20);
  EXPECT_EQ(eight->Find("core_seconds")->Find("matmul")->number, 7);
}

}  // namespace
}  // namespace mgc
