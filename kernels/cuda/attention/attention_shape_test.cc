// Which uses of attention have kernels of tensor cores and of warpgroups, and their launches.
#include <cstdint>
#include <type_traits>

#include "gtest/gtest.h"
#include "kernels/cuda/attention/attention_group_shape.h"
#include "kernels/cuda/attention/attention_tensor_shape.h"

namespace mgc::cuda {
namespace {

// What no kernel of tensor cores takes goes to the general ones.
TEST(AttentionShape, TensorCoresTakeWholeVectorsUpToDim128) {
  AttentionShape shape = {1, 10, 10, 1, 1, 64};
  EXPECT_TRUE(TensorCoresTake(shape));
  shape.dim = 128;
  EXPECT_TRUE(TensorCoresTake(shape));
  for (const int64_t dim : {0, 1, 63, 66, 136}) {
    shape.dim = dim;
    EXPECT_FALSE(TensorCoresTake(shape));
  }
  shape.dim = 64;
  shape.scale = -1;
  EXPECT_FALSE(TensorCoresTake(shape));
  shape.scale = 1;
  shape.keys = int64_t{1} << 30;
  EXPECT_FALSE(TensorCoresTake(shape));
}

// Blocks of two warpgroups, for 64 rows each; what every kernel has in shared memory fits.
TEST(AttentionShape, LaunchesOfWarpgroups) {
  for (const int dim : {64, 128}) {
    for (const bool plain : {true, false}) {
      const GroupTiles tiles = GroupForwardTiles(dim, plain);
      const int64_t bytes = GroupForwardBytes(dim, plain);
      const LaunchShape shape = GroupShape(tiles, bytes, 129, 3, 1000);
      EXPECT_EQ(shape.block, 256U);
      EXPECT_EQ(shape.grid_x, 2U * 3U);
      EXPECT_EQ(shape.shared_bytes, bytes + (dim == 64 ? 16 : 8));  // a byte for each tile
      EXPECT_TRUE(IsLaunchable(shape));
      EXPECT_LE(tiles.blocks * shape.shared_bytes, kMostSharedOfGroups);
    }
    EXPECT_TRUE(IsLaunchable(GroupShape(GroupGradTiles(), GroupGradBytes(dim), 128, 1, 1000)));
  }
  // More than GPUs without warpgroups have.
  EXPECT_GT(GroupGradBytes(128), kMostShared);
  EXPECT_EQ(QuerySumsOfHead(65, 128), 2 * 64 * 128);
}

TEST(AttentionShape, WarpgroupsTakeWhatFits) {
  AttentionShape shape = {1, 10, 10, 1, 1, 64};
  EXPECT_TRUE(GroupsTake(shape));
  shape.queries = shape.keys = int64_t{1} << 20;  // classes of 16,384 tiles
  EXPECT_TRUE(GroupsTake(shape));
  shape.queries = int64_t{1} << 24;
  EXPECT_FALSE(GroupsTake(shape));
}

// The kernel's constants are those of the use.
TEST(AttentionShape, KindsOfKernels) {
  AttentionShape shape = {1, 10, 10, 1, 1, 40};
  AttentionDropout dropout;
  const auto kind = [](auto dim, auto plain) { return 2 * dim.value + (plain.value ? 1 : 0); };
  EXPECT_EQ(ForKind(shape, dropout, kind), 2 * 64 + 1);
  dropout.p = 0.1;
  EXPECT_EQ(ForKind(shape, dropout, kind), 2 * 64);
  dropout.p = 0;
  shape.dim = 72;
  EXPECT_EQ(ForKind(shape, dropout, kind), 2 * 128 + 1);
  shape.cap = 3;
  EXPECT_EQ(ForKind(shape, dropout, kind), 2 * 128);
}

}  // namespace
}  // namespace mgc::cuda
