#include "kernels/cuda/device/tensor_layout.h"

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

TEST(TensorLayout, HalfChunksAreAPermutationAndReadWithoutBankConflicts) {
  std::set<int> places;
  for (int row = 0; row < 32; ++row) {
    for (int chunk = 0; chunk < 4; ++chunk) {
      EXPECT_TRUE(places.insert(SwizzledHalfChunk(row, chunk)).second);
    }
  }
  EXPECT_EQ(*places.rbegin(), 32 * 4 - 1);
  for (int row = 0; row < 32; row += 16) {
    for (int chunk = 0; chunk < 4; chunk += 2) {
      ExpectNoConflicts([&](int lane) {
        const MatrixCell at = AcrossThenDown(lane);
        return SwizzledHalfChunk(row + at.row, chunk + at.column);
      });
    }
  }
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
