#include "tools/views/overview.h"

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

}  // namespace
}  // namespace mgc
