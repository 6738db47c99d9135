#include "graph/types/even_cut.h"

#include "gtest/gtest.h"

namespace mgc {
namespace {

// Axis 0 has 4 ranks, axis 1 has 2.
Mesh TestMesh() { return *Mesh::Create({{"tp", 4}, {"dp", 2}}); }

TEST(EvenCutTest, EveryPieceIsFull) {
  const Mesh mesh = TestMesh();
  EXPECT_TRUE(CutsEvenly({16, "a"}, {0, 1}, mesh));
  EXPECT_FALSE(CutsEvenly({12, "a"}, {0, 1}, mesh));
  EXPECT_TRUE(CutsEvenly({12, "a"}, {0}, mesh));
  EXPECT_FALSE(CutsEvenly({3, "a"}, {0}, mesh));
  EXPECT_FALSE(CutsEvenly({8, "a", 4}, {0}, mesh));  // room for 4 on each of 4 ranks
  EXPECT_TRUE(CutsEvenly({16, "a", 4}, {0}, mesh));
  EXPECT_TRUE(CutsEvenly({7, "a"}, {}, mesh));
}

TEST(EvenCutTest, PiecesOfPiecesMustBeFull) {
  const Mesh mesh = TestMesh();
  EXPECT_TRUE(PiecesNest({16, "a"}, {0, 1}, {0}, mesh));
  EXPECT_FALSE(PiecesNest({12, "a"}, {0, 1}, {0}, mesh));
  EXPECT_FALSE(PiecesNest({12, "a"}, {0}, {0, 1}, mesh));
  EXPECT_TRUE(PiecesNest({12, "a"}, {0, 1}, {}, mesh));
  EXPECT_TRUE(PiecesNest({12, "a"}, {}, {0, 1}, mesh));
  EXPECT_TRUE(PiecesNest({12, "a"}, {0, 1}, {0, 1}, mesh));
}

}  // namespace
}  // namespace mgc
