#include "runtime/data/permutation.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace mgc {
namespace {

std::vector<int64_t> All(uint64_t seed, Permutation::Stream stream, int64_t size) {
  const Permutation order(seed, stream, size);
  std::vector<int64_t> all;
  for (int64_t i = 0; i < size; ++i) all.push_back(order.At(i));
  return all;
}

TEST(PermutationTest, EveryIndexOnce) {
  for (const int64_t size : {1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 1000, 4097}) {
    std::vector<int64_t> all = All(7, {0, 0}, size);
    std::sort(all.begin(), all.end());
    for (int64_t i = 0; i < size; ++i) ASSERT_EQ(all[static_cast<size_t>(i)], i) << size;
  }
}

TEST(PermutationTest, SeedsSourcesAndEpochsHaveTheirOwn) {
  const auto first = All(7, {0, 0}, 1000);
  EXPECT_EQ(first, All(7, {0, 0}, 1000));
  for (const auto& other : {All(8, {0, 0}, 1000), All(7, {1, 0}, 1000), All(7, {0, 1}, 1000)}) {
    int same = 0;
    for (size_t i = 0; i < other.size(); ++i) same += other[i] == first[i] ? 1 : 0;
    EXPECT_LT(same, 10);  // one on average
  }
}

// Over many epochs every index comes to every place equally often: chi-square of 16 x 16 counts,
// with 225 degrees of freedom (standard deviation 21), within five standard deviations.
TEST(PermutationTest, PlacesAreUniform) {
  constexpr int64_t kSize = 16;
  constexpr int64_t kEpochs = 4000;
  std::vector<double> counts(kSize * kSize);
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const auto all = All(3, {0, epoch}, kSize);
    for (int64_t i = 0; i < kSize; ++i) {
      counts[static_cast<size_t>(i * kSize + all[static_cast<size_t>(i)])] += 1;
    }
  }
  const double expected = static_cast<double>(kEpochs) / kSize;
  double sum = 0;
  for (const double count : counts) sum += (count - expected) * (count - expected) / expected;
  EXPECT_LT(std::abs(sum - 225), 5 * 21.3);
}

TEST(PermutationTest, HugeSizes) {
  const int64_t size = (int64_t{1} << 62) - 12345;
  const Permutation order(1, {0, 3}, size);
  for (const int64_t i : {int64_t{0}, int64_t{1}, size / 2, size - 1}) {
    EXPECT_GE(order.At(i), 0);
    EXPECT_LT(order.At(i), size);
  }
}

}  // namespace
}  // namespace mgc
