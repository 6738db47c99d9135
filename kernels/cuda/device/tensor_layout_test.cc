#include "kernels/cuda/device/tensor_layout.h"

#include <cstdint>
#include <set>
#include <utility>

#include "gtest/gtest.h"

namespace mgc::cuda {
namespace {

constexpr int kLanes = 32;
constexpr int kBankGroups = 8;  // of 16 bytes

TEST(TensorLayout, EveryElementIsHeldOnce) {
  std::set<std::pair<int, int>> left, right, sums;
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const MatrixCell a = LeftCell(lane, i), c = SumCell(lane, i);
      EXPECT_TRUE(left.insert({a.row, a.column}).second);
      EXPECT_TRUE(left.insert({a.row, a.column + 1}).second);
      EXPECT_TRUE(sums.insert({c.row, c.column}).second);
    }
    for (int i = 0; i < 2; ++i) {
      const MatrixCell b = RightCell(lane, i);
      EXPECT_TRUE(right.insert({b.row, b.column}).second);
      EXPECT_TRUE(right.insert({b.row + 1, b.column}).second);
    }
  }
  EXPECT_EQ(left.size(), 256);
  EXPECT_EQ(right.size(), 128);
  EXPECT_EQ(sums.size(), 128);
}

TEST(TensorLayout, SwizzledChunksAreAPermutation) {
  for (const int chunks : {8, 16}) {
    std::set<int> places;
    for (int row = 0; row < 16; ++row) {
      for (int chunk = 0; chunk < chunks; ++chunk) {
        EXPECT_TRUE(places.insert(SwizzledChunk(chunks, row, chunk)).second);
      }
    }
    EXPECT_EQ(*places.rbegin(), 16 * chunks - 1);
  }
}

// The eight lanes that are served at once touch every bank once.
template <class Touch>
void ExpectNoConflicts(const Touch& chunk_of) {
  for (int first = 0; first < kLanes; first += kBankGroups) {
    std::set<int> groups;
    for (int lane = first; lane < first + kBankGroups; ++lane) {
      groups.insert(chunk_of(lane) % kBankGroups);
    }
    EXPECT_EQ(groups.size(), kBankGroups);
  }
}

TEST(TensorLayout, HalfChunksAreAPermutationAndWrittenWithoutBankConflicts) {
  std::set<int> places;
  for (int row = 0; row < 32; ++row) {
    for (int chunk = 0; chunk < 4; ++chunk) {
      EXPECT_TRUE(places.insert(SwizzledHalfChunk(row, chunk)).second);
    }
  }
  EXPECT_EQ(*places.rbegin(), 32 * 4 - 1);
  // A warp's sums: 8 rows, one chunk.
  for (int chunk = 0; chunk < 4; ++chunk) {
    ExpectNoConflicts([&](int lane) { return SwizzledHalfChunk(lane % 8, chunk); });
  }
}

// Where warpgroups look for an element of a tile is where its chunk is put.
TEST(TensorLayout, TilesLieAsWarpgroupsReadThem) {
  for (const int chunks : {8, 4}) {
    const int line = chunks * 16;
    const SharedLayout along = {line, false, 8 * line, 0}, across = {line, true, 8 * line, 0};
    for (int row = 0; row < 64; ++row) {
      for (int i = 0; i < chunks * 8; ++i) {
        const int chunk =
            chunks == 8 ? SwizzledChunk(8, row, i / 8) : SwizzledHalfChunk(row, i / 8);
        const auto at = static_cast<uint64_t>(chunk) * 16 + static_cast<uint64_t>(i) % 8 * 2;
        EXPECT_EQ(Exchanged(along, static_cast<uint64_t>(PlaceIn(along, row, i))), at);
        EXPECT_EQ(Exchanged(across, static_cast<uint64_t>(PlaceIn(across, i, row))), at);
      }
    }
  }
}

// Beyond a line's rows, in the next part of the tile.
TEST(TensorLayout, OperandsAcrossSeveralLines) {
  const SharedLayout layout = {64, true, 512, 8192};
  EXPECT_EQ(PlaceIn(layout, 31, 0), 62);
  EXPECT_EQ(PlaceIn(layout, 32, 0), 8192);
  EXPECT_EQ(PlaceIn(layout, 33, 9), 8192 + 512 + 64 + 2);
}

// Fields of 14 bits in units of 16 bytes, from bits 0, 16 and 32; the kind of exchange from bit 62.
TEST(TensorLayout, DescriptorsOfSharedMatrices) {
  EXPECT_EQ(DescriptorOf({128, false, 1024, 0}, 0x8400),
            0x840 | uint64_t{1} << 16 | uint64_t{64} << 32 | uint64_t{1} << 62);
  EXPECT_EQ(DescriptorOf({64, true, 512, 8192}, 0x10000),
            0x1000 | uint64_t{512} << 16 | uint64_t{32} << 32 | uint64_t{2} << 62);
}

TEST(TensorLayout, MatricesAreReadWithoutBankConflicts) {
  for (const int chunks : {8, 16}) {
    for (int row = 0; row < 64; row += 16) {
      for (int chunk = 0; chunk < chunks; chunk += 2) {
        const auto read = [&](const MatrixCell& at) {
          return SwizzledChunk(chunks, row + at.row, chunk + at.column);
        };
        ExpectNoConflicts([&](int lane) { return read(DownThenAcross(lane)); });
        ExpectNoConflicts([&](int lane) { return read(AcrossThenDown(lane)); });
      }
    }
    // Rows are copied by lanes side by side.
    ExpectNoConflicts(
        [&](int lane) { return SwizzledChunk(chunks, 5 + lane / chunks, lane % chunks); });
  }
}

}  // namespace
}  // namespace mgc::cuda
