#include "kernels/parallel.h"

#include <atomic>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/testing/call_threads.h"

namespace mgc {
namespace {

// How often each index is visited; ranges must begin at multiples of the grain.
std::vector<int> Visits(Parallel& parallel, int64_t n, int64_t grain) {
  std::vector<std::atomic<int>> count(static_cast<size_t>(n));
  parallel.For(n, grain, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(begin % grain, 0);
    EXPECT_LT(begin, end);
    for (int64_t i = begin; i < end; ++i) ++count[static_cast<size_t>(i)];
  });
  return std::vector<int>(count.begin(), count.end());
}

TEST(Parallel, VisitsEveryIndexOnce) {
  SerialParallel serial;
  for (int width : {1, 2, 3, 8}) {
    CallThreads pool(width);
    for (int64_t n : {0, 1, 2, 7, 100, 1001}) {
      for (int64_t grain : {1, 3, 64, 5000}) {
        const std::vector<int> once(static_cast<size_t>(n), 1);
        EXPECT_EQ(Visits(pool, n, grain), once) << width << " " << n << " " << grain;
        EXPECT_EQ(Visits(serial, n, grain), once);
      }
    }
  }
}

TEST(Parallel, SlotsAreNotShared) {
  CallThreads pool(3);
  std::vector<std::atomic<int>> busy(3);
  std::vector<std::atomic<int>> done(1000);
  ForEachTask(pool, 1000, [&](int64_t task, int slot) {
    EXPECT_EQ(busy[static_cast<size_t>(slot)].exchange(1), 0);
    ++done[static_cast<size_t>(task)];
    busy[static_cast<size_t>(slot)] = 0;
  });
  for (const std::atomic<int>& count : done) EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace mgc
