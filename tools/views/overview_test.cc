#include "tools/views/overview.h"

#include <vector>

#include "gtest/gtest.h"
#include "tools/views/testing/small_plan.h"

namespace mgc {
namespace {

TEST(OverviewTest, CountsWhatAStepSends) {
  const Overview overview = OverviewOf(SmallPlan(/*layers=*/8), 16);
  ASSERT_EQ(overview.classes.size(), 2);
  ASSERT_EQ(overview.links.size(), 2);
  EXPECT_TRUE(overview.links[0].forward);
  EXPECT_EQ(ToString(overview.links[0]), "4 x 512 B");
  EXPECT_EQ(ToString(overview.classes[1].chunks[0]), "stage 1: layers 4-7, head");
  // Four layers and the embedding forward, four backward, a maximum, in four micro-batches; a norm.
  EXPECT_EQ(ToString(overview.classes[0].exchanges[0]), "18.1 KiB sent over tp in 41 collectives");
  EXPECT_EQ(GridOf(SmallPlan()).text, "tp 2 across, dp 2 down");
}

// Of ten classes in one entry each sends to its neighbours: four micro-batches on, four back.
TEST(OverviewTest, CountsOnceWhatClassesOfOneEntrySendToEachOther) {
  Plan plan = SmallPlan(/*layers=*/8);
  const Program first = plan.classes[0].train;
  const Program last = plan.classes[1].train;
  plan.classes.resize(1);
  plan.stages.resize(1);
  for (int c = 1; c < 12; ++c) {
    PlanClass next = plan.classes[0];
    next.coordinate = next.chunks[0].stage = c;
    next.chunks[0].has_embedding = false;
    next.chunks[0].has_head = c == 11;
    next.train.transfers.clear();
    for (Transfer transfer : c < 11 ? first.transfers : std::vector<Transfer>()) {
      transfer.peer = c + 1;
      next.train.transfers.push_back(transfer);
    }
    for (Transfer transfer : last.transfers) {
      transfer.peer = c - 1;
      next.train.transfers.push_back(transfer);
    }
    plan.classes.push_back(next);
    plan.stages.push_back({c, 0});
  }
  const Overview overview = OverviewOf(plan, 4);
  ASSERT_EQ(overview.classes.size(), 3);
  EXPECT_EQ(overview.links.size(), 6);
  for (const OverviewLink& link : overview.links) EXPECT_EQ(ToString(link), "4 x 512 B");
}

}  // namespace
}  // namespace mgc
