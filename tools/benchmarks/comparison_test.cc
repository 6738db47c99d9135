#include "tools/benchmarks/comparison.h"

#include <sched.h>

#include <memory>
#include <thread>
#include <utility>

#include "gtest/gtest.h"

namespace mgc {
namespace {

TEST(Median, IsTheMiddle) {
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(Median({5, 1, 3}), 3);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);
}

TEST(Faster, ComparesNeighboursInTime) {
  const Ratio ratio = Faster({4, 4, 5, 2}, {2, 3, 2, 2});  // 0.5, 0.75, 0.4, 1
  EXPECT_DOUBLE_EQ(ratio.median, 0.625);
  EXPECT_DOUBLE_EQ(ratio.low, 0.475);
  EXPECT_DOUBLE_EQ(ratio.high, 0.8125);
  EXPECT_TRUE(ratio.noisy());
  EXPECT_FALSE(Faster({4, 4}, {2, 2}).noisy());
}

// Takes as long as it is told, and says in which order sides ran.
class Told : public BenchSide {
 public:
  Told(std::string name, double seconds, std::string* order)
      : name_(std::move(name)), seconds_(seconds), order_(*order) {}
  absl::StatusOr<StepTime> Step() override {
    order_ += name_;
    if (seconds_ < 0) return absl::InternalError("broken");
    return StepTime{seconds_, 2 * seconds_};
  }

 private:
  const std::string name_;
  const double seconds_;
  std::string& order_;
};

SideSpec Spec(const std::string& name, double seconds, std::string* order) {
  return {name, [=] { return std::make_unique<Told>(name, seconds, order); }};
}

TEST(Compare, SidesTakeTurnsAndTheFirstTwoDoNotCount) {
  std::string order;
  const Comparison comparison{"x",
                              "X",
                              10,
                              {Spec("a", 2, &order), Spec("b", 3, &order), Spec("c", 1, &order)},
                              {{{0, 1}, {2}, 0.4}},
                              {}};
  const absl::StatusOr<ComparisonResult> result = Compare(comparison, 1);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(order, "abcabcabc");
  ASSERT_EQ(result->sides.size(), 3);
  EXPECT_EQ(result->sides[1].seconds, std::vector<double>{3});
  EXPECT_EQ(result->sides[1].cpu_seconds, std::vector<double>{6});
  const absl::optional<Finding> finding = Judge(*result, result->claims[0]);
  ASSERT_TRUE(finding.has_value());
  EXPECT_EQ(finding->side, 0);
  EXPECT_EQ(finding->peer, 2);
  EXPECT_EQ(finding->ratio.median, 0.5);
  EXPECT_EQ(finding->cpu_ratio, 0.5);
  EXPECT_TRUE(finding->reached());
}

TEST(Compare, WhatAMachineLacksIsMissing) {
  std::string order;
  const SideSpec lacking = {"b", [] { return absl::UnimplementedError("no such instruction"); }};
  const Comparison comparison{"x",
                              "X",
                              10,
                              {Spec("a", 2, &order), lacking, Spec("c", 1, &order)},
                              {{{0}, {1, 2}, 0.4}, {{0}, {1}, 0.4}},
                              {}};
  const absl::StatusOr<ComparisonResult> result = Compare(comparison, 1);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(order, "acacac");
  EXPECT_EQ(result->sides[1].missing, "no such instruction");
  EXPECT_EQ(Judge(*result, result->claims[0])->peer, 2);
  EXPECT_FALSE(Judge(*result, result->claims[1]).has_value());
}

TEST(MemoryRatio, IsOfThoseThatTell) {
  ComparisonResult result;
  result.sides.resize(3);
  result.sides[0].profile.peak_bytes = 300;
  result.sides[1].profile.peak_bytes = 400;
  EXPECT_EQ(MemoryRatio(result, {0, 1, 0.6}), 0.75);
  EXPECT_FALSE(MemoryRatio(result, {0, 2, 0.6}).has_value());
}

TEST(PinSides, WhatIsStartedLaterHasTheSameProcessors) {
  std::thread([] {  // a thread of its own: what it is kept on ends with it
    ASSERT_TRUE(PinSides(1).ok());
    cpu_set_t kept;
    std::thread([&] { sched_getaffinity(0, sizeof kept, &kept); }).join();
    EXPECT_EQ(CPU_COUNT(&kept), 1);
  })
      .join();
}

TEST(Compare, NamesTheSideThatFails) {
  std::string order;
  const Comparison comparison{"x", "X", 10, {Spec("a", -1, &order)}, {}, {}};
  EXPECT_EQ(Compare(comparison, 1).status(), absl::InternalError("a: broken"));
}

}  // namespace
}  // namespace mgc
