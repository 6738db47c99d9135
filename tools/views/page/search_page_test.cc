#include "tools/views/page/search_page.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tools/views/page/front_plot.h"
#include "tools/views/page/testing/markup_text.h"

namespace mgc {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

FoundPlan PlanOf(int64_t step_ns, int64_t peak_bytes, int64_t tp) {
  FoundPlan plan;
  plan.config.world_size = 8;
  plan.config.tp = tp;
  plan.step_ns = step_ns;
  plan.peak_bytes = plan.memory.peak = peak_bytes;
  return plan;
}

// Three plans on the front, one that is not, one that does not fit by far.
SearchAnswer Answer(int64_t memory) {
  SearchAnswer answer;
  answer.model = "<model>";
  answer.machine.name = "machine & co";
  answer.machine.memory = memory;
  answer.budget = 16;
  answer.found.front = {PlanOf(1000, 80 * kMiB, 1), PlanOf(1500, 40 * kMiB, 2),
                        PlanOf(1501, 20 * kMiB, 4)};
  answer.found.ranked = answer.found.front;
  answer.found.known = answer.found.front;
  answer.found.known.push_back(PlanOf(1400, 60 * kMiB, 8));
  answer.found.known.push_back(PlanOf(900, 900 * kMiB, 1));
  answer.why_not = {{"--tp 16", "12 heads < 16"}};
  return answer;
}

// How often a text stands in another.
int CountOf(const std::string& page, const std::string& text) {
  int count = 0;
  for (size_t at = page.find(text); at != page.npos; at = page.find(text, at + 1)) ++count;
  return count;
}

TEST(SearchPageTest, IsWellFormedAndFetchesNothing) {
  const std::string page = SearchPage(Answer(100 * kMiB));
  EXPECT_EQ(FlawOf(page), "");
  EXPECT_EQ(page, SearchPage(Answer(100 * kMiB)));
  for (const char* outside : {"src=", "href=", "@import", "url(", "<script"}) {
    EXPECT_FALSE(absl::StrContains(page, outside)) << outside;
  }
  EXPECT_TRUE(absl::StrContains(page, "12 heads &lt; 16"));
}

TEST(SearchPageTest, PointsAreThePlansThatLieInThePicture) {
  const std::string page = SearchPage(Answer(100 * kMiB));
  EXPECT_EQ(CountOf(page, "<circle class=\"front\""), 3);
  EXPECT_EQ(CountOf(page, "<circle class=\"found\""), 1);
  EXPECT_TRUE(absl::StrContains(page, "1 lie outside of the picture"));
  // Rows of both tables, then the points: the others before the front.
  const std::vector<int64_t> steps = {1000, 1500, 1501, 1400, 1000, 1500, 1501, 1000, 1500, 1501};
  EXPECT_EQ(ValuesOf(page, "data-step-ns"), steps);
}

TEST(SearchPageTest, LabelsDoNotLieOnEachOther) {
  const std::string page = SearchPage(Answer(100 * kMiB));
  const std::vector<int64_t> at = ValuesOf(page, "class=\"label\" x=\"650\" y");
  ASSERT_EQ(at.size(), 3u);
  EXPECT_GE(at[0] - at[1], 18);
  EXPECT_GE(at[1] - at[2], 18);
}

TEST(SearchPageTest, ADeviceEndsInThePicture) {
  for (const int64_t memory : {90 * kMiB, 100 * kMiB, 81920 * kMiB}) {
    const std::string page = SearchPage(Answer(memory));
    EXPECT_EQ(ValuesOf(page, "data-bytes"), std::vector<int64_t>{memory});
    EXPECT_EQ(absl::StrContains(page, "beyond this scale"), memory > 1000 * kMiB);
  }
}

TEST(SearchPageTest, ThePictureStandsByItself) {
  const std::string picture = FrontPicture(Answer(100 * kMiB));
  EXPECT_EQ(FlawOf("<!DOCTYPE html>\n" + picture), "");
  EXPECT_TRUE(absl::StartsWith(picture, "<svg xmlns="));
  EXPECT_TRUE(absl::StrContains(picture, "<title>&lt;model&gt; on 8 ranks"));
  EXPECT_EQ(CountOf(picture, "<circle class=\"front\""), 3);
}

TEST(SearchPageTest, OnePlanIsAPictureToo) {
  SearchAnswer answer = Answer(100 * kMiB);
  answer.found.front.resize(1);
  answer.found.ranked.resize(1);
  EXPECT_EQ(CountOf(SearchPage(answer), "<circle class=\"front\""), 1);
}

TEST(SearchPageTest, ManyAlikeKeepTheirLabelsInside) {
  SearchAnswer answer = Answer(100 * kMiB);
  answer.found.front.clear();
  for (int i = 0; i < 40; ++i) answer.found.front.push_back(PlanOf(1000 + i, (90 - i) * kMiB, 1));
  answer.found.ranked = {answer.found.front[0]};
  for (const int64_t y : ValuesOf(SearchPage(answer), "class=\"label\" x=\"650\" y")) {
    EXPECT_GT(y, 0);
  }
}

}  // namespace
}  // namespace mgc
