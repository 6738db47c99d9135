#include "passes/plan/time/steady_rounds.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "passes/plan/time/cost.h"

namespace mgc {
namespace {

constexpr AxisSet kTp = AxisSet::FirstN(1);

// Of one class whose rounds begin at these times; in each it computes 5 ns and waits for 1.
SimulatedStep StepOf(const std::vector<int64_t>& begins) {
  SimulatedStep step;
  step.makespan_ns = begins.back() + 30;
  step.rounds.emplace_back();
  for (const int64_t at : begins) {
    const auto i = static_cast<int64_t>(step.rounds[0].size());
    step.rounds[0].push_back({at, 5 * i, 2 * i, {3 * i, {{kTp, i}}, 0}});
  }
  step.busy_ns = {40};
  step.update_ns = {1};
  step.transfers_ns = {20};
  step.collectives = {{30, {{kTp, 9}}, 0}};
  return step;
}

TEST(SteadyRoundsTest, EachTakesAsLongAsTheLast) {
  SimulatedStep step = StepOf({0, 9, 19, 29});
  ASSERT_TRUE(AddSteadyRounds(10, &step));
  EXPECT_EQ(step.makespan_ns, 59 + 100);
  EXPECT_EQ(step.busy_ns[0], 40 + 50);
  EXPECT_EQ(step.update_ns[0], 1);
  EXPECT_EQ(step.transfers_ns[0], 20 + 20);
  EXPECT_EQ(step.collectives[0].all_ns, 30 + 30);
  EXPECT_EQ(step.collectives[0].exposed.at(kTp), 9 + 10);
}

TEST(SteadyRoundsTest, NothingIsAddedWhereTheyDiffer) {
  for (const std::vector<int64_t>& begins :
       {std::vector<int64_t>{0, 9, 19, 30}, std::vector<int64_t>{0, 10}}) {
    SimulatedStep step = StepOf(begins);
    EXPECT_FALSE(AddSteadyRounds(10, &step));
    EXPECT_EQ(step.makespan_ns, begins.back() + 30);
  }
  SimulatedStep other = StepOf({0, 10, 20, 30});
  other.rounds.push_back(StepOf({0, 11, 22, 33}).rounds[0]);
  EXPECT_FALSE(AddSteadyRounds(10, &other));
  // Nobody's last two are alike.
  SimulatedStep growing = StepOf({0, 10, 19, 30});
  growing.rounds.push_back(growing.rounds[0]);
  EXPECT_FALSE(AddSteadyRounds(10, &growing));
  SimulatedStep none;
  EXPECT_FALSE(AddSteadyRounds(10, &none));
}

// The second class has been held up by the first since its last round.
TEST(SteadyRoundsTest, TheSlowestClassHoldsUpTheOthers) {
  SimulatedStep step = StepOf({0, 10, 20, 30});
  step.rounds.push_back(StepOf({0, 8, 17, 27}).rounds[0]);
  step.busy_ns.push_back(40);
  step.transfers_ns.push_back(20);
  step.collectives.push_back({});
  ASSERT_TRUE(AddSteadyRounds(2, &step));
  EXPECT_EQ(step.makespan_ns, 60 + 20);
}

TEST(SteadyRoundsTest, NoStepIsOfCenturies) {
  SimulatedStep step = StepOf({0, kMaxNs / 8, kMaxNs / 4, 3 * (kMaxNs / 8)});
  EXPECT_FALSE(AddSteadyRounds(10, &step));
}

}  // namespace
}  // namespace mgc
