// Sums and maxima by every form that device code has, against double precision.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/reduce/reduce.h"
#include "kernels/cuda/testing/device_array.h"

namespace mgc::cuda {
namespace {

constexpr int64_t kCutRows = 200;  // as many are cut into parts

template <class T>
std::vector<float> ExpectSum(int64_t outer, int64_t reduced, int64_t inner, size_t shift) {
  const std::vector<T> values = Narrowed<T>(UniformFloats(outer * reduced * inner, 1));
  const DeviceArray<T> x(values, shift);
  const DeviceArray<float> y(std::vector<float>(static_cast<size_t>(outer * inner), NAN));
  const DeviceArray<T> narrow(std::vector<T>(static_cast<size_t>(outer * inner)));
  const int count = outer * reduced >= kCutRows ? 4 : 1;
  const DeviceArray<float> sums(
      std::vector<float>(static_cast<size_t>(count * outer * inner), NAN));
  const PartsRoom parts = {sums.data(), count};
  EXPECT_EQ(SumMiddle(nullptr, outer, reduced, inner, parts, x.data(), y.data()), 0);
  EXPECT_EQ(SumMiddle(nullptr, outer, reduced, inner, parts, x.data(), narrow.data()), 0);
  std::vector<float> made = y.Values();
  EXPECT_EQ(Widened(Narrowed<T>(made)), Widened(narrow.Values()));
  for (int64_t i = 0; i < outer * inner; ++i) {
    double sum = 0;
    for (int64_t r = 0; r < reduced; ++r) {
      sum += AsFloat(values[static_cast<size_t>((i / inner * reduced + r) * inner + i % inner)]);
    }
    const double room = 2e-7 * std::sqrt(static_cast<double>(reduced)) + 1e-6;
    EXPECT_NEAR(made[static_cast<size_t>(i)], sum, room) << "element " << i;
  }
  return made;
}

template <class T>
void ExpectSums(int64_t outer, int64_t reduced, int64_t inner) {
  SCOPED_TRACE(testing::Message() << outer << " x " << reduced << " x " << inner);
  EXPECT_EQ(ExpectSum<T>(outer, reduced, inner, 0), ExpectSum<T>(outer, reduced, inner, 1))
      << "bits depend on the place";
}

template <class T>
void ExpectMaxima(int64_t rows, int64_t cols, int64_t valid) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << cols << ", " << valid << " valid");
  const std::vector<T> values = Narrowed<T>(UniformFloats(rows * cols, 2, -9, -1));
  const DeviceArray<T> x(values);
  const DeviceArray<float> y(std::vector<float>(static_cast<size_t>(rows), NAN));
  ASSERT_EQ(RowMax(nullptr, rows, cols, valid, x.data(), y.data()), 0);
  const std::vector<float> made = y.Values();
  for (int64_t r = 0; r < rows; ++r) {
    float most = -std::numeric_limits<float>::infinity();
    for (int64_t c = 0; c < valid; ++c) {
      most = std::max(most, AsFloat(values[static_cast<size_t>(r * cols + c)]));
    }
    EXPECT_EQ(made[static_cast<size_t>(r)], most) << "row " << r;
  }
}

template <class T>
class CudaReduce : public testing::Test {};
using Elements = testing::Types<float, Bfloat16, Float16>;
TYPED_TEST_SUITE(CudaReduce, Elements);

TYPED_TEST(CudaReduce, SumsOfFew) { ExpectSums<TypeParam>(3, 5, 70); }
TYPED_TEST(CudaReduce, SumsOfRows) {
  ExpectSums<TypeParam>(9, 60, 1);
  ExpectSums<TypeParam>(3, 4096, 1);
  ExpectSums<TypeParam>(3, 3001, 1);
}
TYPED_TEST(CudaReduce, SumsOverRows) {
  ExpectSums<TypeParam>(1, 17, 3);
  ExpectSums<TypeParam>(2, 100, 96);
  ExpectSums<TypeParam>(3, 50, 37);
  ExpectSums<TypeParam>(1, 9000, 18);
}
TYPED_TEST(CudaReduce, MaximaOfRows) {
  ExpectMaxima<TypeParam>(9, 7, 5);
  ExpectMaxima<TypeParam>(2, 5, 0);
  ExpectMaxima<TypeParam>(3, 4096, 4090);
  ExpectMaxima<TypeParam>(3, 3001, 3001);
}

// x[a, b, c] of 5 x 6 x 7 over a and c, and repeated as [a, 4, b, c].
TEST(CudaReduceBoxes, AnyDims) {
  const std::vector<float> values = UniformFloats(210, 3);
  const DeviceArray<float> x(values), sums(std::vector<float>(6)), most(std::vector<float>(6));
  const IndexBox kept = {6, 1, {6}, {7}}, reduced = {35, 2, {5, 7}, {42, 1}};
  ASSERT_EQ(SumAny(nullptr, kept, reduced, x.data(), sums.data()), 0);
  ASSERT_EQ(MaxAny(nullptr, kept, reduced, x.data(), most.data()), 0);
  const std::vector<float> made = sums.Values(), largest = most.Values();
  for (size_t b = 0; b < 6; ++b) {
    double sum = 0;
    float max = -9;
    for (size_t i = 0; i < 35; ++i) {
      const float value = values[i / 7 * 42 + b * 7 + i % 7];
      sum += value;
      max = std::max(max, value);
    }
    EXPECT_NEAR(made[b], sum, 1e-6);
    EXPECT_EQ(largest[b], max);
  }
}

TEST(CudaReduceBoxes, Broadcasts) {
  const std::vector<float> values = UniformFloats(30, 4);
  const DeviceArray<float> x(values);
  const DeviceArray<Bfloat16> y(std::vector<Bfloat16>(1920)), plain(y.Values(), 1);
  const IndexBox last = {1920, 4, {5, 4, 6, 16}, {6, 0, 1, 0}};
  ASSERT_EQ(Broadcast(nullptr, last, x.data(), y.data()), 0);
  ASSERT_EQ(Broadcast(nullptr, last, x.data(), plain.data()), 0);
  const std::vector<float> made = Widened(y.Values());
  EXPECT_EQ(made, Widened(plain.Values()));
  for (size_t i = 0; i < made.size(); ++i) {
    EXPECT_EQ(made[i], ToFloat(ToBfloat16(values[i / 384 * 6 + i / 16 % 6]))) << i;
  }
  const DeviceArray<float> rows(std::vector<float>(90));
  ASSERT_EQ(Broadcast(nullptr, IndexBox{90, 2, {3, 30}, {0, 1}}, x.data(), rows.data()), 0);
  const std::vector<float> repeated = rows.Values();
  for (size_t i = 0; i < 90; ++i) EXPECT_EQ(repeated[i], values[i % 30]) << i;
}

// All three sums of n elements; more than one block each from 4097 elements on.
template <class T>
std::vector<double> ExpectTotals(int64_t n, size_t shift) {
  SCOPED_TRACE(testing::Message() << n << " elements");
  const std::vector<float> a = UniformFloats(n, 5), b = UniformFloats(n, 6);
  const DeviceArray<T> x(std::vector<T>(a.begin(), a.end()), shift),
      w(std::vector<T>(b.begin(), b.end()));
  const DeviceArray<char> workspace(std::vector<char>(static_cast<size_t>(SumWorkspaceBytes(n))));
  const DeviceArray<double> sums({NAN, NAN, NAN});
  EXPECT_EQ(Total(nullptr, n, x.data(), workspace.data(), sums.data()), 0);
  EXPECT_EQ(SumSquares(nullptr, n, x.data(), workspace.data(), sums.data() + 1), 0);
  EXPECT_EQ(WeightedSum(nullptr, n, x.data(), w.data(), workspace.data(), sums.data() + 2), 0);
  long double expected[3] = {};
  for (size_t i = 0; i < a.size(); ++i) {
    expected[0] += a[i];
    expected[1] += double{a[i]} * a[i];
    expected[2] += double{a[i]} * b[i];
  }
  std::vector<double> made = sums.Values();
  for (size_t s = 0; s < 3; ++s) {
    EXPECT_NEAR(made[s], static_cast<double>(expected[s]), 1e-15 * static_cast<double>(n) + 1e-14)
        << "sum " << s;
  }
  return made;
}

TEST(CudaReduceAll, Totals) {
  for (const int64_t n : {0, 1, 1003, 4096, 4097, 20001}) {
    EXPECT_EQ(ExpectTotals<float>(n, 0), ExpectTotals<float>(n, 1)) << "bits depend on the place";
    EXPECT_EQ(ExpectTotals<double>(n, 0), ExpectTotals<double>(n, 1)) << "bits depend on the place";
  }
}

// The workspace that graphs promise: a double for every 1024 elements.
TEST(CudaReduceAll, WorkspaceIsBounded) {
  for (int64_t n = 0; n < int64_t{1} << 40; n = n * 3 + 1) {
    EXPECT_LE(SumWorkspaceBytes(n), (n / 1024 + 1) * 8) << n;
  }
}

TEST(CudaReduceAll, StacksMoreThanALaunchTakes) {
  std::vector<double> values(600);
  std::iota(values.begin(), values.end(), 0.5);
  const DeviceArray<double> x(values), y(std::vector<double>(600, NAN));
  std::vector<const void*> places;
  for (size_t i = 0; i < 600; ++i) places.push_back(x.data() + (599 - i));
  ASSERT_EQ(Stack(nullptr, 600, places.data(), y.data()), 0);
  std::reverse(values.begin(), values.end());
  EXPECT_EQ(y.Values(), values);
}

}  // namespace
}  // namespace mgc::cuda
