#include "passes/search/plans/chunk_layers.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace mgc {
namespace {

using Counts = std::vector<int64_t>;

TEST(LayersOfChunksTest, TheChunkOfTheHeadHasLess) {
  EXPECT_EQ(LayersOfChunks({8, 8}, 2, {100, 0, 200}), (Counts{4, 5, 4, 3}));
  EXPECT_EQ(LayersOfChunks({8, 5}, 2, {100, 0, 900}), (Counts{4, 5, 4, 0}));
}

// Short are the first of the first rank and the last of the last one.
TEST(LayersOfChunksTest, TheEndsStayShort) {
  EXPECT_EQ(LayersOfChunks({3, 3}, 2, {100, 0, 0}), (Counts{1, 2, 2, 1}));
  EXPECT_EQ(LayersOfChunks({5, 5, 5, 5}, 4, {100, 0, 0}),
            (Counts{1, 1, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 1, 1}));
}

TEST(LayersOfChunksTest, AChunkBetweenTheEndsHasALayer) {
  EXPECT_EQ(LayersOfChunks({2, 2}, 3, {100, 0, 0}), (Counts{0, 1, 1, 1, 1, 0}));
  // Without an embedding or a head the ends have one too.
  EXPECT_EQ(LayersOfChunks({3, 3}, 3, {100, -1, -1}), (Counts{1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(LeastLayers({100, -1, 0}, 0, 6), 1);
  EXPECT_EQ(LeastLayers({100, 0, -1}, 0, 6), 0);
  EXPECT_EQ(LeastLayers({100, 0, 0}, 5, 6), 0);
  EXPECT_EQ(LeastLayers({100, 0, 0}, 1, 6), 1);
}

TEST(LayersOfChunksTest, OneChunkHasAll) {
  EXPECT_EQ(LayersOfChunks({3, 0, 7}, 1, {100, 0, 900}), (Counts{3, 0, 7}));
}

// Layers that cost nothing are spread, too.
TEST(LayersOfChunksTest, NoTimeIsNoReason) {
  EXPECT_EQ(LayersOfChunks({4}, 2, {0, 0, 0}), (Counts{2, 2}));
}

}  // namespace
}  // namespace mgc
