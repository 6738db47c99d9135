#include "tools/views/drawings/read_timeline.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using testing::HasSubstr;

TEST(ReadTimelineTest, ReadsWhatIsWritten) {
  Timeline timeline;
  timeline.tracks = {{1, "rank \"0\"", 1, "compute"},
                     {1, "rank \"0\"", 2, "communication"},
                     {2, "predicted: pp 0", 1, "compute"}};
  timeline.events = {{0, "layer.forward[3] matmul layer 1", "compute", 999, 1000000001},
                     {1, "all-reduce tp", "collective", 0, 7},
                     {2, "0U0", "action", 5, 6}};
  timeline.events[0].flops = 123456789012345;
  const Timeline read = ReadTimeline(TimelineJson(timeline), "t").value();
  EXPECT_EQ(TimelineJson(read), TimelineJson(timeline));
  EXPECT_FALSE(IsPredicted(read.tracks[1]));
  EXPECT_TRUE(IsPredicted(read.tracks[2]));
}

TEST(ReadTimelineTest, RefusesWhatIsNone) {
  EXPECT_THAT(ReadTimeline("{}", "t").status().message(), HasSubstr("t: no timeline"));
  EXPECT_THAT(ReadTimeline("{\n,", "t").status().message(), HasSubstr("t:2:1"));
  EXPECT_TRUE(ReadTimeline(R"({"traceEvents": [1, {"ph": "X", "ts": 1e300}, "a"]})", "t").ok());
}

}  // namespace
}  // namespace mgc
