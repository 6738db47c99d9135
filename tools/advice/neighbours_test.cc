#include "tools/advice/neighbours.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace mgc {
namespace {

std::vector<std::string> ChangesOf(const std::vector<Neighbour>& neighbours, bool saving) {
  std::vector<std::string> changes;
  for (const Neighbour& neighbour : neighbours) {
    if (neighbour.saves == saving) changes.push_back(neighbour.change);
  }
  return changes;
}

ParallelConfig EightRanks() {
  ParallelConfig config;
  config.world_size = 8;
  config.tp = config.pp = 2;
  config.micro_batch_size = 2;
  config.zero = 1;
  return config;
}

TEST(NeighboursTest, AreTheNextValuesOfWhatIsOpen) {
  const std::vector<Neighbour> all = NeighboursOf(NeighbourLimits(), EightRanks());
  EXPECT_EQ(ChangesOf(all, true),
            (std::vector<std::string>{"--tp 4", "--cp 2", "--pp 4", "--micro-batch-size 1",
                                      "--sequence-parallel", "--recompute selective",
                                      "--recompute full", "--zero 2"}));
  EXPECT_EQ(ChangesOf(all, false),
            (std::vector<std::string>{"--tp 1", "--pp 1", "--micro-batch-size 4",
                                      "--schedule interleaved --vp 2", "--zero 0"}));
  NeighbourLimits limits;
  limits.fixed.tp = limits.fixed.cp = limits.fixed.pp = limits.fixed.micro_batch_size = true;
  limits.fixed.chunks = limits.fixed.sequence_parallel = limits.fixed.recompute = true;
  limits.fixed.zero = true;
  EXPECT_TRUE(NeighboursOf(limits, EightRanks()).empty());
  limits.fixed.precision = false;
  EXPECT_EQ(ChangesOf(NeighboursOf(limits, EightRanks()), true),
            (std::vector<std::string>{"--bf16"}));
  ParallelConfig narrow = EightRanks();
  narrow.compute_type = DType::kBF16;
  EXPECT_EQ(ChangesOf(NeighboursOf(limits, narrow), false),
            (std::vector<std::string>{"without --bf16"}));
}

TEST(NeighboursTest, BringAlongWhatTheChangeNeeds) {
  ParallelConfig config = EightRanks();
  config.sequence_parallel = true;
  config.schedule = ScheduleKind::kInterleaved;
  config.vp = 4;
  for (const Neighbour& n : NeighboursOf(NeighbourLimits(), config)) {
    if (n.change == "--tp 1") {
      EXPECT_FALSE(n.config.sequence_parallel);
    } else if (n.change == "--pp 1") {
      EXPECT_EQ(n.config.schedule, ScheduleKind::kOneFOneB);
    } else if (n.change == "--tp 4") {
      EXPECT_EQ(n.config.zero, 0);  // dp is 1
    } else if (n.change == "--schedule 1f1b") {
      EXPECT_EQ(n.config.vp, 1);
    }
  }
}

TEST(NeighboursTest, MoreRanksWhereDpHasNoFactorLeft) {
  ParallelConfig config;
  config.world_size = config.tp = 3;
  NeighbourLimits limits;
  limits.fixed.cp = limits.fixed.pp = limits.fixed.micro_batch_size = limits.fixed.recompute = true;
  limits.fixed.sequence_parallel = true;
  limits.ranks = false;
  const std::vector<Neighbour> more = NeighboursOf(limits, config);
  ASSERT_EQ(more.size(), 2u);
  EXPECT_EQ(more[0].change, "--tp 1");  // what is odd goes to one
  EXPECT_EQ(more[1].change, "--tp 6 --world-size 6");
  EXPECT_EQ(more[1].config.world_size, 6);
}

}  // namespace
}  // namespace mgc
