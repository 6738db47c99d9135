#include "tools/views/page/page.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/verify/testing/sample_plan.h"
#include "gtest/gtest.h"
#include "passes/plan/time/predict_step.h"
#include "tools/views/overview.h"
#include "tools/views/page/markup.h"

namespace mgc {
namespace {

// Why a text is no XML, as far as a page may go wrong: elements that are not closed in order,
// attributes without quotes, characters that would be markup. Empty: it is.
std::string FlawOf(absl::string_view text) {
  std::vector<std::string> open;
  if (!absl::ConsumePrefix(&text, "<!DOCTYPE html>")) return "no document type";
  while (!text.empty()) {
    if (text[0] != '<') {
      const size_t end = std::min(text.find('<'), text.size());
      for (size_t at = text.find('&'); at < end; at = text.find('&', at + 1)) {
        const size_t semicolon = text.find(';', at);
        if (semicolon == text.npos || semicolon - at > 5) return "a bare &";
      }
      text.remove_prefix(end);
      continue;
    }
    const size_t end = text.find('>');
    if (end == text.npos) return "an open tag";
    const absl::string_view tag = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    if (absl::StartsWith(tag, "/")) {
      if (open.empty() || open.back() != tag.substr(1)) return absl::StrCat("closed: ", tag);
      open.pop_back();
      continue;
    }
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return absl::StrCat("quotes: ", tag);
    if (absl::StrContains(tag, '<')) return absl::StrCat("a bare < in ", tag);
    if (!absl::EndsWith(tag, "/")) open.emplace_back(tag.substr(0, tag.find(' ')));
  }
  return open.empty() ? "" : absl::StrCat("left open: ", open.back());
}

// The values of an attribute, in order.
std::vector<int64_t> ValuesOf(const std::string& page, absl::string_view attribute) {
  std::vector<int64_t> values;
  const std::vector<std::string> parts = absl::StrSplit(page, absl::StrCat(" ", attribute, "=\""));
  for (size_t i = 1; i < parts.size(); ++i) {
    int64_t value = -1;
    EXPECT_TRUE(absl::SimpleAtoi(parts[i].substr(0, parts[i].find('"')), &value)) << attribute;
    values.push_back(value);
  }
  return values;
}

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
