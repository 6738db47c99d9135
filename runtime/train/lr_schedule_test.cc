#include "runtime/train/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

// A few roundings of operations in another order.
constexpr double kRelative = 1e-15;

void ExpectNear(double actual, double expected, const std::string& where) {
  EXPECT_NEAR(actual, expected, kRelative * std::abs(expected)) << where;
}

LrSchedule LrScheduleOf(const JsonValue& c) {
  LrSchedule s;
  s.style = ParseLrDecayStyle(c.Find("style")->text).value();
  s.init_lr = c.Find("init_lr")->number;
  s.max_lr = c.Find("max_lr")->number;
  s.min_lr = c.Find("min_lr")->number;
  s.warmup_samples = c.Find("warmup")->integer;
  s.decay_samples = c.Find("decay_steps")->integer;
  if (s.style == LrDecayStyle::kWsd) {
    s.wsd_style = ParseWsdDecayStyle(c.Find("wsd_style")->text).value();
    s.wsd_decay_samples = c.Find("wsd_decay_steps")->integer;
  }
  return s;
}

WeightDecaySchedule WeightDecayOf(const JsonValue& c) {
  WeightDecaySchedule s;
  s.style = ParseWeightDecayStyle(c.Find("wd_style")->text).value();
  s.start = c.Find("start_wd")->number;
  s.end = c.Find("end_wd")->number;
  s.increase_samples = c.Find("decay_steps")->integer;
  return s;
}

TEST(Schedules, EqualMegatronsAtEveryPoint) {
  JsonValue vectors =
      ParseJson(ReadFile("tests/data/lr_schedule.json").value(), "lr_schedule.json").value();
  int points = 0;
  for (const JsonValue& c : vectors.Find("cases")->items) {
    LrSchedule lr = LrScheduleOf(c);
    WeightDecaySchedule decay = WeightDecayOf(c);
    EXPECT_TRUE(CheckSchedule(lr).empty());
    EXPECT_TRUE(CheckSchedule(decay).empty());
    for (const JsonValue& point : c.Find("points")->items) {
      int64_t samples = point.items[0].integer;
      std::string where = c.Find("style")->text + " at " + std::to_string(samples);
      ExpectNear(LearningRate(lr, samples), point.items[1].number, where);
      ExpectNear(WeightDecay(decay, samples), point.items[2].number, where);
      ++points;
    }
  }
  EXPECT_EQ(points, 90);
}

// The two WSD styles that the vectors leave out, by hand: 200 samples of fall from 1 to 0 that
// begin at 800.
TEST(LearningRate, WsdLinearAndMinusSquareRoot) {
  LrSchedule s;
  s.style = LrDecayStyle::kWsd;
  s.max_lr = 1;
  s.decay_samples = 1000;
  s.wsd_decay_samples = 200;
  s.wsd_style = WsdDecayStyle::kLinear;
  EXPECT_EQ(LearningRate(s, 800), 1);
  EXPECT_EQ(LearningRate(s, 850), 0.75);
  EXPECT_EQ(LearningRate(s, 1000), 0);
  s.wsd_style = WsdDecayStyle::kMinusSquareRoot;
  EXPECT_EQ(LearningRate(s, 850), 0.5);
  EXPECT_EQ(LearningRate(s, 1000), 0);
}

TEST(WeightDecay, ConstantStays) {
  WeightDecaySchedule s;
  s.start = s.end = 0.1;
  EXPECT_EQ(WeightDecay(s, 0), 0.1);
  EXPECT_EQ(WeightDecay(s, 1000000), 0.1);
}

TEST(CheckSchedule, ReportsEveryViolation) {
  LrSchedule s;
  s.style = LrDecayStyle::kWsd;
  s.max_lr = 0.1;
  s.min_lr = 0.2;
  s.init_lr = std::numeric_limits<double>::quiet_NaN();
  s.warmup_samples = 10;
  s.decay_samples = 10;
  s.wsd_decay_samples = 11;
  const std::string message = CheckSchedule(s).ToString();
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 3) << message;
  EXPECT_THAT(
      message,
      HasSubstr("the least learning rate must be from 0 to the learning rate 0.1, not 0.2"));
  s = LrSchedule();
  s.max_lr = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(CheckSchedule(s).empty());
  WeightDecaySchedule decay;
  decay.start = 0.2;
  decay.end = 0.1;
  EXPECT_FALSE(CheckSchedule(decay).empty());
}

TEST(ParseStyles, ErrorsNameTheLegalOnes) {
  EXPECT_EQ(ParseLrDecayStyle("cosin").status().message(),
            "unknown learning rate decay style cosin (did you mean cosine?); legal are constant, "
            "linear, cosine, "
            "inverse-square-root, WSD");
  EXPECT_FALSE(ParseWsdDecayStyle("").ok());
  EXPECT_FALSE(ParseWeightDecayStyle("Linear").ok());
}

}  // namespace
}  // namespace mgc
