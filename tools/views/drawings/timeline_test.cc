#include "tools/views/drawings/timeline.h"

#include "absl/strings/str_cat.h"
#include "graph/base/json.h"
#include "gtest/gtest.h"
#include "tools/views/testing/small_plan.h"

namespace mgc {
namespace {

JsonValue EventsOf(const std::string& text) {
  absl::StatusOr<JsonValue> root = ParseJson(text, "timeline");
  EXPECT_TRUE(root.ok()) << root.status() << "\n" << text;
  return root.ok() ? *root->Find("traceEvents") : JsonValue{};
}

TEST(TimelineTest, WritesTimesAsIntegersWithThreeDecimals) {
  Timeline timeline;
  timeline.tracks = {{1, "rank 0", 1, "compute"}};
  timeline.events = {{0, "a\"", "compute", 999, 1000000001, 0, false}};
  const std::string text = TimelineJson(timeline);
  EXPECT_NE(text.find("\"ts\": 0.999, \"dur\": 999999.002}"), std::string::npos) << text;
  EXPECT_EQ(EventsOf(text).items.size(), 5);
  EXPECT_EQ(EventsOf(TimelineJson({})).items.size(), 0);
}

TEST(TimelineTest, JoinsSendsAndReceives) {
  SimulatedStep step;
  step.spans = {{0, false, "0F3", 0, 10},      {0, true, "0SEND_F3", 10, 20},
                {1, true, "1RECV_F3", 10, 20}, {1, true, "1SEND_B2", 20, 30},
                {0, true, "0RECV_B2", 20, 30}, {0, true, "collective", 30, 31}};
  const Timeline timeline = PredictedTimeline(SmallPlan(), step, 100);
  ASSERT_EQ(timeline.events.size(), 6);
  EXPECT_EQ(timeline.events[0].flow, 0);
  EXPECT_EQ(timeline.events[1].flow, timeline.events[2].flow);
  EXPECT_EQ(timeline.events[3].flow, timeline.events[4].flow);
  EXPECT_NE(timeline.events[1].flow, timeline.events[3].flow);
  EXPECT_TRUE(timeline.events[1].flow_begins);
  EXPECT_FALSE(timeline.events[2].flow_begins);
  EXPECT_EQ(timeline.events[5].flow, 0);
  EXPECT_EQ(timeline.tracks[timeline.events[2].track].process, 101);
  EXPECT_EQ(timeline.tracks[timeline.events[2].track].thread, 2);
}

}  // namespace
}  // namespace mgc
