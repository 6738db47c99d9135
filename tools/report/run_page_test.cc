#include "tools/report/run_page.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/verify/testing/sample_plan.h"
#include "gtest/gtest.h"
#include "tools/views/page/testing/markup_text.h"

namespace mgc {
namespace {

RunLog LogOf(int steps) {
  std::string text;
  for (int step = 1; step <= steps; ++step) {
    absl::StrAppend(&text, "{\"step\":", step, ",\"loss\":", 10 - step * 0.001,
                    ",\"lr\":", step == 2 ? "\"NaN\"" : "0.5", ",\"ms\":", step,
                    ",\"predicted_ms\":2}\n");
  }
  return ParseRunLog(text, "m").value();
}

TEST(RunPageTest, IsWellFormedAndStandsByItself) {
  const Plan plan = EditedSample({});
  const RunLog log = LogOf(5);
  const std::vector<LogRow> rows = {
      {"<rank>", true, false, {{"0F0", "action", 0, 2}, {"0U0", "action", 2, 3}}}};
  const std::string page = RunPage({"<run>", log, &plan, rows}).value();
  EXPECT_EQ(FlawOf(page), "");
  EXPECT_EQ(page, RunPage({"<run>", log, &plan, rows}).value());
  for (const char* outside : {"src=", "href=", "@import", "url(http", "<run>", "<rank>"}) {
    EXPECT_FALSE(absl::StrContains(page, outside)) << outside;
  }
  EXPECT_TRUE(absl::StrContains(page, "Communication"));
  EXPECT_TRUE(absl::StrContains(page, "data-us=\"2.000\""));
}

TEST(RunPageTest, ShowsEveryPoint) {
  const std::string page = RunPage({"run", LogOf(5), nullptr, {}}).value();
  EXPECT_EQ(FlawOf(page), "");
  for (const char* point : {"data-key=\"loss\" data-step=\"5\" data-value=\"9.995\"",
                            "data-key=\"lr\" data-step=\"1\" data-value=\"0.5\"",
                            "data-key=\"ms\" data-step=\"4\" data-value=\"4\""}) {
    EXPECT_TRUE(absl::StrContains(page, point)) << point;
  }
  EXPECT_FALSE(absl::StrContains(page, "data-key=\"lr\" data-step=\"2\""));  // NaN
  EXPECT_TRUE(absl::StrContains(page, "<tr data-fact=\"ratio\">"));
  EXPECT_FALSE(absl::StrContains(page, "nan"));
}

TEST(RunPageTest, ThinsLongCurves) {
  const std::string page = RunPage({"run", LogOf(1001), nullptr, {}}).value();
  EXPECT_TRUE(absl::StrContains(page, "data-key=\"loss\" data-step=\"1001\""));
  EXPECT_FALSE(absl::StrContains(page, "data-key=\"loss\" data-step=\"2\""));
  EXPECT_TRUE(absl::StrContains(page, "data-key=\"loss\" data-step=\"4\""));
}

}  // namespace
}  // namespace mgc
