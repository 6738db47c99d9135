#include "passes/plan/time/ring_time.h"

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "graph/ir/collective.h"
#include "graph/types/machine.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

// Machines of four ranks at 100 MB/s, 1 us and 0.1 us a step, and between them 10 MB/s, 10 us and
// 1 us a step.
Machine TwoTiers() {
  Machine machine;
  machine.tiers = {{"inside", 4, 1e8, 1.0, 1e-6, 1e-7},
                   {"between", kAnyRanks, 1e7, 1.0, 1e-5, 1e-6}};
  return machine;
}

double Microseconds(const Machine& machine, const std::vector<int64_t>& ranks, CollectiveKind kind,
                    int64_t payload) {
  return CollectiveSeconds(machine, ranks, kind, payload) * 1e6;
}

std::vector<int64_t> FirstRanks(size_t count) {
  std::vector<int64_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

constexpr auto kAllReduce = CollectiveKind::kAllReduce;
constexpr auto kAllGather = CollectiveKind::kAllGather;
constexpr auto kAllToAll = CollectiveKind::kAllToAll;

// Three steps, or twice three, of which the latency holds one.
TEST(RingTimeTest, EveryStepButTheFirstIsAHop) {
  const Machine machine = TwoTiers();
  EXPECT_DOUBLE_EQ(Microseconds(machine, {0, 1, 2, 3}, kAllGather, 4000), 1 + 0.2 + 30);
  EXPECT_DOUBLE_EQ(Microseconds(machine, {0, 1, 2, 3}, kAllReduce, 4000), 1 + 0.5 + 60);
  EXPECT_DOUBLE_EQ(Microseconds(machine, {1, 5}, kAllGather, 2000), 10 + 100);
}

// Of 14 steps 12 stay inside; 14,000 bytes leave through four ports.
TEST(RingTimeTest, RanksOfAMachineShareItsPorts) {
  EXPECT_DOUBLE_EQ(Microseconds(TwoTiers(), FirstRanks(8), kAllReduce, 8000),
                   10 + 1 + 12 * 0.1 + 350);
  Machine slow_inside = TwoTiers();
  slow_inside.tiers[0].bandwidth = 2e7;
  EXPECT_DOUBLE_EQ(Microseconds(slow_inside, FirstRanks(8), kAllReduce, 8000),
                   10 + 1 + 12 * 0.1 + 700);
}

TEST(RingTimeTest, TheMachineWithTheFewestPortsSetsThePace) {
  const Machine machine = TwoTiers();
  EXPECT_DOUBLE_EQ(Microseconds(machine, {2, 3, 4, 5}, kAllGather, 4000), 10 + 0.2 + 150);
  EXPECT_DOUBLE_EQ(Microseconds(machine, {3, 4, 5}, kAllGather, 3000), 10 + 0.1 + 200);
}

// Of 7,000 bytes a rank sends 3,000 to its own machine and 4,000 through its own port.
TEST(RingTimeTest, NothingIsPassedOnInAnAllToAll) {
  EXPECT_DOUBLE_EQ(Microseconds(TwoTiers(), FirstRanks(8), kAllToAll, 8000), 10 + 0.6 + 400);
}

// 31,000 bytes over one port, over four of a machine's, over sixteen of a data centre's.
TEST(RingTimeTest, ADataCentreIsOneMoreTier) {
  Machine machine = TwoTiers();
  machine.tiers[1].ranks = 16;
  machine.tiers.push_back({"cable", kAnyRanks, 1e5, 1.0, 1e-2});
  EXPECT_DOUBLE_EQ(Microseconds(machine, FirstRanks(32), kAllGather, 32000),
                   10000 + 24 * 0.1 + 6 * 1 + 31000.0 / 16 / 0.1);
  EXPECT_DOUBLE_EQ(Microseconds(machine, FirstRanks(16), kAllGather, 16000),
                   10 + 12 * 0.1 + 2 * 1 + 15000.0 / 4 / 10);
}

TEST(RingTimeTest, SmallMessagesReachLess) {
  Machine machine = TwoTiers();
  machine.tiers[1].points = {{1000, 0.5}};
  EXPECT_DOUBLE_EQ(Microseconds(machine, {0, 4}, kAllGather, 1000), 10 + 500 / 5.0);
  EXPECT_DOUBLE_EQ(Microseconds(machine, {0, 4}, kAllGather, 4000), 10 + 2000 / 10.0);
  EXPECT_DOUBLE_EQ(MessageSeconds(machine.tiers[1], 500) * 1e6, 10 + 500 / 5.0);
}

}  // namespace
}  // namespace mgc
