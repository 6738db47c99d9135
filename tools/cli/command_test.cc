#include "tools/cli/command.h"

#include "gtest/gtest.h"

namespace mgc {
namespace {

TEST(CommandTest, WhatIsRefusedAndWhatFailsHaveTheirExitCodes) {
  EXPECT_EQ(FailToCompile(absl::InvalidArgumentError("tp is 3")), kExitInfeasible);
  EXPECT_EQ(FailToCompile(absl::FailedPreconditionError("no room")), kExitInfeasible);
  EXPECT_EQ(FailToCompile(absl::InternalError("after pass shard: ...")), kExitFailed);
  EXPECT_EQ(FailToCompile(absl::ResourceExhaustedError("of memory")), kExitFailed);
}

}  // namespace
}  // namespace mgc
