#include "graph/plan/plan_refs.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace mgc {
namespace {

ActionRef Forward(int chunk, int64_t micro_batch) {
  return {ActionKind::kForward, chunk, micro_batch};
}

TEST(ProgramIndexTest, FindsWhatWasAdded) {
  ProgramIndex index;
  int place = 0;
  for (const int chunk : {1, 0}) {
    for (int64_t m = 7; m >= 0; --m) EXPECT_TRUE(index.Add(Forward(chunk, m), place++));
  }
  EXPECT_TRUE(index.Add(TransferRef{TransferKind::kSendForward, 1, 7}, place));
  EXPECT_EQ(index.Find(Forward(1, 7)), 0);
  EXPECT_EQ(index.Find(Forward(0, 0)), 15);
  EXPECT_EQ(index.Find(TransferRef{TransferKind::kSendForward, 1, 7}), place);
  EXPECT_FALSE(index.Add(Forward(1, 3), 99));
  EXPECT_EQ(index.Find(Forward(1, 3)), 4);
  for (const ActionRef& absent :
       {Forward(1, 8), Forward(2, 0), Forward(1, -1), ActionRef{ActionKind::kBackward, 1, 7}}) {
    EXPECT_EQ(index.Find(absent), -1);
  }
}

// Numbers as a file may name them: far apart, and found when those between have come.
TEST(ProgramIndexTest, NumbersMayLieFarApart) {
  ProgramIndex index;
  constexpr int64_t kFar = int64_t{1} << 40;
  EXPECT_TRUE(index.Add(Forward(0, kFar), 1));
  EXPECT_TRUE(index.Add(Forward(0, 100), 2));
  EXPECT_FALSE(index.Add(Forward(0, kFar), 3));
  for (int64_t m = 0; m < 200; ++m) EXPECT_EQ(index.Add(Forward(0, m), 10), m != 100);
  EXPECT_EQ(index.Find(Forward(0, kFar)), 1);
  EXPECT_EQ(index.Find(Forward(0, 100)), 2);
  EXPECT_EQ(index.Find(Forward(0, 101)), 10);
  EXPECT_EQ(index.Find(Forward(0, kFar - 1)), -1);
}

}  // namespace
}  // namespace mgc
