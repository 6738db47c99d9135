#include "tools/views/page/page.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/verify/testing/sample_plan.h"
#include "gtest/gtest.h"
#include "passes/plan/time/predict_step.h"
#include "tools/views/overview.h"
#include "tools/views/page/markup.h"
#include "tools/views/page/testing/markup_text.h"

namespace mgc {
namespace {

TEST(MarkupTest, EscapesAndNests) {
  Markup page;
  page.Open("a", {{"b", "\"<&>"}}).Text("x < y\x01\xff").Void("br", {}).Close();
  EXPECT_EQ(std::move(page).Finish(),
            "<!DOCTYPE html>\n<a b=\"&quot;&lt;&amp;&gt;\">x &lt; y?\?<br/></a>\n");
}

TEST(MarkupTest, TheCheckOfThisTestFindsFlaws) {
  EXPECT_EQ(FlawOf("<!DOCTYPE html>\n<a b=\"1\">&lt;<br/></a>\n"), "");
  for (const char* flawed : {"<a></a>", "<!DOCTYPE html><a><b></a></b>", "<!DOCTYPE html><a>",
                             "<!DOCTYPE html><a b=\"1></a>", "<!DOCTYPE html><a>&b</a>"}) {
    EXPECT_NE(FlawOf(flawed), "") << flawed;
  }
}

TEST(PageTest, IsWellFormedAndAlwaysTheSame) {
  Plan plan = EditedSample({});
  plan.options.push_back({"model", "<script>&\"'\x01</script>"});
  const absl::StatusOr<std::string> page = PlanPage(plan);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(FlawOf(*page), "");
  EXPECT_EQ(*page, *PlanPage(plan));
  EXPECT_FALSE(absl::StrContains(*page, "<script>"));
  for (const char* outside : {"src=", "href=", "@import", "url(http"}) {
    EXPECT_FALSE(absl::StrContains(*page, outside)) << outside;
  }
}

TEST(PageTest, BarsAreThePredictedStep) {
  const Plan plan = EditedSample({});
  const std::string page = *PlanPage(plan);
  const SimulatedStep step = *PredictStep(plan);
  const std::vector<int64_t> begins = ValuesOf(page, "data-begin");
  const std::vector<int64_t> ends = ValuesOf(page, "data-end");
  ASSERT_EQ(begins.size(), ends.size());
  std::multiset<std::pair<int64_t, int64_t>> bars;
  for (size_t i = 0; i < begins.size(); ++i) bars.insert({begins[i], ends[i]});
  size_t computed = 0;
  for (const SimulatedSpan& span : step.spans) {
    if (span.communication) continue;
    ++computed;
    const auto bar = bars.find({span.begin_ns, span.end_ns});
    ASSERT_NE(bar, bars.end()) << span.name;
    bars.erase(bar);
  }
  EXPECT_GT(computed, 0);
  EXPECT_EQ(*std::max_element(ends.begin(), ends.end()), step.makespan_ns);
}

TEST(PageTest, BytesAreThoseOfThePlan) {
  const Plan plan = EditedSample({});
  const std::string page = *PlanPage(plan);
  std::vector<int64_t> expected;
  for (const OverviewLink& link : OverviewOf(plan, 16).links) expected.push_back(link.bytes);
  EXPECT_FALSE(expected.empty());
  for (const PlanClass& plan_class : plan.classes) {
    const MemoryUse& m = plan_class.memory;
    expected.insert(expected.end(), {m.params, m.grads, m.states, m.copies, m.frames, m.boundaries,
                                     m.transient, m.peak, m.workspace});
  }
  EXPECT_EQ(ValuesOf(page, "data-bytes"), expected);
  std::vector<int64_t> peaks;
  for (const PlanClass& plan_class : plan.classes) peaks.push_back(plan_class.memory.peak);
  EXPECT_EQ(ValuesOf(page, "data-peak"), peaks);
}

}  // namespace
}  // namespace mgc
