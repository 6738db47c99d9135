#include "tools/report/run_log.h"

#include <cmath>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

constexpr char kMetrics[] =
    "{\"step\":1,\"loss\":5,\"other_losses\":{\"router\":0.5},\"left_out\":true,\"ms\":90,"
    "\"warm_up\":true}\n"
    "{\"step\":2,\"loss\":\"NaN\",\"grad_norm\":\"-Infinity\",\"ms\":10}\n"
    "{\"step\":2,\"eval_loss\":4.5,\"eval_samples\":8}\n"
    "{\"step\":3,\"loss\":3,\"ms\":20}\n"
    "{\"step\":4,\"los";

TEST(RunLog, HoldsEveryNumberByItsKey) {
  const RunLog log = ParseRunLog(kMetrics, "m").value();
  EXPECT_EQ(log.steps, 3);
  EXPECT_EQ(log.left_out, 1);
  EXPECT_EQ(log.warm_up, std::set<int64_t>{1});
  ASSERT_EQ(log.Of("loss").size(), 3);
  EXPECT_TRUE(std::isnan(log.Of("loss")[1].value));
  EXPECT_EQ(log.Of("loss")[2].step, 3);
  EXPECT_EQ(log.Of("grad_norm")[0].value, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(log.Of("other_losses.router")[0].value, 0.5);
  EXPECT_EQ(log.Of("eval_loss")[0].step, 2);
  EXPECT_TRUE(log.Of("step").empty());
  EXPECT_EQ(MedianOf(log.Of("ms"), log.warm_up), 15);
  EXPECT_EQ(MedianOf(log.Of("ms"), {}), 20);
  EXPECT_TRUE(std::isnan(MedianOf(log.Of("none"), {})));
}

TEST(RunLog, RefusesWhatIsNone) {
  EXPECT_THAT(ParseRunLog("", "m").status().message(), HasSubstr("m: no step"));
  EXPECT_THAT(ParseRunLog("{\"step\":1,\"loss\":1}\n[]\n", "m").status().message(),
              HasSubstr("m, line 2: no object with a whole number `step`"));
  EXPECT_THAT(ParseRunLog("{\"step\":1.5}\n", "m").status().message(), HasSubstr("line 1"));
  EXPECT_FALSE(ParseRunLog("words\n", "m").ok());
}

// Two steps of a rank, measured, and one predicted.
constexpr char kTimeline[] = R"({"traceEvents": [
{"name":"process_name","ph":"M","pid":1,"tid":1,"args":{"name":"rank 0"}},
{"name":"thread_name","ph":"M","pid":1,"tid":1,"args":{"name":"compute"}},
{"name":"thread_name","ph":"M","pid":1,"tid":2,"args":{"name":"communication"}},
{"name":"process_name","ph":"M","pid":2,"tid":1,"args":{"name":"predicted: pp 0"}},
{"name":"0F0","cat":"action","ph":"X","pid":1,"tid":1,"ts":0,"dur":5},
{"name":"0U0","cat":"action","ph":"X","pid":1,"tid":1,"ts":5,"dur":5},
{"name":"0F0","cat":"action","ph":"X","pid":1,"tid":1,"ts":12,"dur":4},
{"name":"layer matmul","cat":"compute","ph":"X","pid":1,"tid":1,"ts":12,"dur":1},
{"name":"all-reduce","cat":"collective","ph":"X","pid":1,"tid":2,"ts":14,"dur":2},
{"name":"0U0","cat":"action","ph":"X","pid":1,"tid":1,"ts":16,"dur":3},
{"name":"0U0","cat":"action","ph":"X","pid":2,"tid":1,"ts":0,"dur":7}]})";

TEST(Timeline, ShowsTheLastStep) {
  const std::vector<LogRow> rows = ParseTimeline(kTimeline, "t").value();
  ASSERT_EQ(rows.size(), 3);
  ASSERT_EQ(rows[0].bars.size(), 2);
  EXPECT_EQ(rows[0].bars[0].begin_us, 2);
  EXPECT_EQ(rows[0].bars[1].name, "0U0");
  EXPECT_EQ(rows[0].bars[1].end_us, 9);
  EXPECT_FALSE(rows[1].computes);
  EXPECT_EQ(rows[1].bars[0].begin_us, 4);
  EXPECT_TRUE(rows[2].predicted);
  EXPECT_EQ(rows[2].bars[0].begin_us, 0);
}

TEST(Timeline, RefusesWhatIsNone) {
  EXPECT_THAT(ParseTimeline("{}", "t").status().message(), HasSubstr("t: no timeline"));
  EXPECT_FALSE(ParseTimeline("{", "t").ok());
  EXPECT_TRUE(ParseTimeline("{\"traceEvents\": []}", "t")->empty());
}

}  // namespace
}  // namespace mgc
