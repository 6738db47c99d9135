#include "tools/cli/check_run.h"

#include "gtest/gtest.h"

namespace mgc {
namespace {

TEST(CheckRunTest, OneRankAndAllAreToldApart) {
  ResolvedRanks resolved;
  resolved.rank = 5;
  resolved.world_size = 8;
  resolved.classes = {1};
  resolved.stages = {1, 3};
  resolved.calls = 12;
  resolved.kernels = 7;
  resolved.groups = 2;
  resolved.channels = 6;
  resolved.peers = 3;
  resolved.arena_bytes = 1536;
  resolved.workspace_bytes = 512;
  EXPECT_EQ(ResolvedLine(resolved),
            "rank 5 of 8 | class 1, stages 1 3 | 12 calls a step | 7 kernels | 2 groups | "
            "6 channels, with 3 ranks | arena 1.5 KiB | workspace 512 B a thread");
  EXPECT_EQ(ResolvedJson(resolved),
            "{\"rank\":5,\"world_size\":8,\"classes\":[1],\"stages\":[1,3],\"calls\":12,"
            "\"kernels\":7,\"groups\":2,\"channels\":6,\"peers\":3,\"arena_bytes\":1536,"
            "\"workspace_bytes\":512}");
  resolved.rank.reset();
  resolved.classes = {0, 1};
  EXPECT_EQ(ResolvedLine(resolved),
            "all 8 ranks | classes 0 1, stages 1 3 | 12 calls a step | 7 kernels | 2 groups | "
            "arenas 1.5 KiB | workspace 512 B a thread");
}

TEST(CheckRunTest, WhatCannotBeResolvedIsAnError) {
  EXPECT_FALSE(ResolveRanks(Plan(), {}, absl::nullopt).ok());
}

}  // namespace
}  // namespace mgc
