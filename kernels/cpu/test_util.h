// What the kernel tests share: reproducible operands, results with guard bytes, and the comparison
// over widths.
#ifndef MGC_KERNELS_CPU_TEST_UTIL_H_
#define MGC_KERNELS_CPU_TEST_UTIL_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/parallel.h"
#include "kernels/testing/call_threads.h"

namespace mgc::cpu {

// Uniform in [low, high), the same for the same seed.
inline std::vector<float> Uniform(int64_t n, uint32_t seed, float low = -1, float high = 1) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = distribution(generator);
  return x;
}

// An array with guards on both sides, so that a write outside is seen. Its start has the alignment
// of an element and no more.
template <class T>
class GuardedArray {
 public:
  GuardedArray(int64_t n, T initial, T mark)
      : n_(n), mark_(mark), all_(static_cast<size_t>(n + 2 * kGuard), initial) {
    for (int64_t i = 0; i < kGuard; ++i) at(i) = at(n + kGuard + i) = mark;
  }
  GuardedArray(const std::vector<T>& initial, T mark)
      : GuardedArray(static_cast<int64_t>(initial.size()), mark, mark) {
    std::copy(initial.begin(), initial.end(), data());
  }
  T* data() { return all_.data() + kGuard; }
  // The contents, after a check of the guards.
  std::vector<T> Take() {
    for (int64_t i = 0; i < kGuard; ++i) {
      EXPECT_TRUE(IsMark(at(i))) << "written before the array";
      EXPECT_TRUE(IsMark(at(n_ + kGuard + i))) << "written after the array";
    }
    return std::vector<T>(data(), data() + n_);
  }

 private:
  static constexpr int64_t kGuard = 37;
  T& at(int64_t i) { return all_[static_cast<size_t>(i)]; }
  bool IsMark(const T& x) const {
    const char* bytes = reinterpret_cast<const char*>(&x);
    return std::equal(bytes, bytes + sizeof x, reinterpret_cast<const char*>(&mark_));
  }
  int64_t n_;
  T mark_;
  std::vector<T> all_;
};

// A result of f32. It begins as NaN, so that what is not written is seen too.
class Guarded : public GuardedArray<float> {
 public:
  explicit Guarded(int64_t n, float initial = std::nanf("")) : GuardedArray(n, initial, kMark) {}
  explicit Guarded(const std::vector<float>& initial) : GuardedArray(initial, kMark) {}

 private:
  static constexpr float kMark = 12345.75f;
};

inline uint32_t BitsOf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

inline ::testing::AssertionResult SameBits(const std::vector<float>& a,
                                           const std::vector<float>& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << "sizes differ";
  for (size_t i = 0; i < a.size(); ++i) {
    if (BitsOf(a[i]) != BitsOf(b[i])) {
      return ::testing::AssertionFailure() << "element " << i << ": " << a[i] << " and " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

// Runs the kernel with 1, 2 and 3 threads, demands the same bits, and returns them.
inline std::vector<float> OverWidths(const std::function<std::vector<float>(Parallel&)>& run) {
  SerialParallel serial;
  std::vector<float> first = run(serial);
  for (int width : {2, 3}) {
    CallThreads parallel(width);
    EXPECT_TRUE(SameBits(first, run(parallel))) << "width " << width;
  }
  return first;
}

// Every element within `tolerance` of the largest magnitude of the expectation.
inline void ExpectClose(const std::vector<float>& actual, const std::vector<double>& expected,
                        double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  double largest = 1e-30;
  for (double e : expected) largest = std::max(largest, std::fabs(e));
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance * largest) << "element " << i;
  }
}

// One array after another.
inline std::vector<float> Joined(const std::vector<std::vector<float>>& parts) {
  std::vector<float> all;
  for (const std::vector<float>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Sizes around those of vectors, and enough to be divided among threads.
inline std::vector<int64_t> ElementSizes() { return {0, 1, 3, 15, 16, 17, 31, 100, 50000}; }

using UnaryLoop = void (*)(Parallel&, int64_t, const float*, float*);
using BinaryLoop = void (*)(Parallel&, int64_t, const float*, const float*, float*);

// An elementwise loop against its meaning, operands uniform in [low, high).
inline void CheckUnary(UnaryLoop kernel, double (*meaning)(double), float low, float high) {
  for (int64_t n : ElementSizes()) {
    const std::vector<float> x = Uniform(n, 1, low, high);
    const std::vector<float> y = OverWidths([&](Parallel& parallel) {
      Guarded out(n);
      kernel(parallel, n, x.data(), out.data());
      return out.Take();
    });
    for (size_t i = 0; i < y.size(); ++i) {
      const double expected = meaning(x[i]);
      ASSERT_NEAR(y[i], expected, 5e-7 * std::max(1.0, std::fabs(expected))) << x[i];
    }
  }
}

// The same of two operands in [-6, 6).
inline void CheckBinary(BinaryLoop kernel, double (*meaning)(double, double)) {
  for (int64_t n : ElementSizes()) {
    const std::vector<float> a = Uniform(n, 1, -6, 6), b = Uniform(n, 2, -6, 6);
    const std::vector<float> y = OverWidths([&](Parallel& parallel) {
      Guarded out(n);
      kernel(parallel, n, a.data(), b.data(), out.data());
      return out.Take();
    });
    for (size_t i = 0; i < y.size(); ++i) {
      const double expected = meaning(a[i], b[i]);
      ASSERT_NEAR(y[i], expected, 1e-6 * std::max(1.0, std::fabs(expected)));
    }
  }
}

}  // namespace mgc::cpu

#endif  // MGC_KERNELS_CPU_TEST_UTIL_H_
