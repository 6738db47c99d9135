#include "graph/verify/shrink/kept_micro_batches.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using testing::ElementsAre;

TEST(KeptMicroBatchesTest, KeepsTheFirstTwoAndTheLast) {
  EXPECT_THAT(KeptMicroBatches(1), ElementsAre(0));
  EXPECT_THAT(KeptMicroBatches(2), ElementsAre(0, 1));
  EXPECT_THAT(KeptMicroBatches(3), ElementsAre(0, 1, 2));
  EXPECT_THAT(KeptMicroBatches(64), ElementsAre(0, 1, 63));
}

}  // namespace
}  // namespace mgc
