#include "tools/views/drawings/timeline.h"

#include <set>
#include <utility>

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

TEST(TimelineTest, JoinsTheSameTransferOfEachStepAndPipeline) {
  Timeline timeline;
  for (int64_t rank = 0; rank < 4; ++rank) {  // ranks 0 and 2, 1 and 3 send to each other
    timeline.tracks.push_back({rank + 1, "", 2, "communication", rank % 2});
  }
  for (int64_t step = 0; step < 2; ++step) {
    for (const size_t track : {0, 1}) {
      timeline.events.push_back({track, "0SEND_F0", "transfer", step * 10, step * 10 + 1});
    }
  }
  for (int64_t step = 0; step < 2; ++step) {
    for (const size_t track : {3, 2}) {
      timeline.events.push_back({track, "1RECV_F0", "transfer", step * 10, step * 10 + 1});
    }
  }
  timeline.events.push_back({0, "0SEND_F0", "transfer", 20, 21});  // of a step that failed
  JoinTransfers(&timeline);
  const std::vector<TimelineEvent>& events = timeline.events;
  const std::vector<std::pair<size_t, size_t>> pairs = {{0, 5}, {1, 4}, {2, 7}, {3, 6}};
  std::set<uint64_t> flows;
  for (const auto& [send, receive] : pairs) {
    EXPECT_NE(events[send].flow, 0);
    EXPECT_EQ(events[send].flow, events[receive].flow);
    EXPECT_TRUE(events[send].flow_begins);
    EXPECT_FALSE(events[receive].flow_begins);
    flows.insert(events[send].flow);
  }
  EXPECT_EQ(flows.size(), pairs.size());
  EXPECT_EQ(events[8].flow, 0);
}

TEST(TimelineTest, ArgumentsAreWrittenWhereTheySaySomething) {
  Timeline timeline;
  timeline.tracks = {{1, "rank 0", 1, "compute"}};
  TimelineEvent event;
  event.name = "all-reduce tp";
  timeline.events = {event};
  EXPECT_EQ(TimelineJson(timeline).find("\"args\": {\"micro"), std::string::npos);
  event.micro_batch = 3;
  event.layer = 0;
  event.bytes = 4096;
  event.flops = 7;
  timeline.events = {event};
  EXPECT_NE(TimelineJson(timeline).find(
                R"("args": {"micro_batch": 3, "layer": 0, "bytes": 4096, "flops": 7})"),
            std::string::npos)
      << TimelineJson(timeline);
}

// A matmul of [2, 8, 64] and [64, 16], half of each over dp and tp, has 2 * 1 * 8 * 32 * 16 flops.
TEST(TimelineTest, CountsFlopsOfARank) {
  const Plan plan = SmallPlan();
  FlopCounter flops(plan);
  const Segment& segment = plan.segments[1];
  EXPECT_EQ(flops.Of(segment, segment.instrs[0]), 2 * 1 * 8 * 32 * 16);
  int64_t all = 0;
  for (const Instr& instr : segment.instrs) all += flops.Of(segment, instr);
  const std::vector<Call> calls = {{1, 0, {}}, {1, 1, {}}};
  EXPECT_EQ(flops.Of(calls), 2 * all);
  EXPECT_EQ(flops.Of(calls), 2 * all);
}

}  // namespace
}  // namespace mgc
