#include "runtime/run/workers.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace mgc {
namespace {

// Tasks 0 .. n-1, of which task t + 1 becomes ready when t has run, or all at once.
class Countdown : public TaskSource {
 public:
  Countdown(Workers& workers, int n, bool chained) : workers_(workers), n_(n), chained_(chained) {}

  int Next() override {
    if (done_ == n_) return kOver;
    const int ready = chained_ ? done_ + 1 : n_;
    if (taken_ == ready || taken_ == n_) return kIdle;
    return taken_++;
  }

  void Run(int task, int worker) override {
    EXPECT_GE(worker, 0);
    EXPECT_LT(worker, workers_.size());
    int64_t sum = 0;
    std::atomic<int64_t> parts{0};
    workers_.For(1000, 10, [&](int64_t begin, int64_t end) { parts += end - begin; });
    sum += parts;
    EXPECT_EQ(sum, 1000);
    std::lock_guard<std::mutex> lock(workers_.mutex());
    order.push_back(task);
    ++done_;
    workers_.Announce();
  }

  std::vector<int> order;  // guarded by the workers' mutex

 private:
  Workers& workers_;
  const int n_;
  const bool chained_;
  int taken_ = 0;
  int done_ = 0;
};

TEST(WorkersTest, RunsEveryTaskOnce) {
  for (int size : {1, 2, 5}) {
    Workers workers(size, size);
    for (bool chained : {false, true}) {
      Countdown source(workers, 200, chained);
      workers.Run(source);
      ASSERT_EQ(source.order.size(), 200u);
      std::vector<bool> seen(200, false);
      for (int task : source.order) seen[task] = true;
      EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 200);
      EXPECT_TRUE(!chained || std::is_sorted(source.order.begin(), source.order.end()));
    }
  }
}

TEST(WorkersTest, ForCoversTheRangeOnceAndRespectsTheGrain) {
  for (int width : {1, 2, 4}) {
    Workers workers(4, width);
    EXPECT_EQ(workers.width(), width);
    for (int64_t n : {0, 1, 7, 64, 1000}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(n));
      workers.For(n, 8, [&](int64_t begin, int64_t end) {
        EXPECT_EQ(begin % 8, 0);
        for (int64_t i = begin; i < end; ++i) ++hits[i];
      });
      for (const std::atomic<int>& hit : hits) EXPECT_EQ(hit, 1);
    }
  }
}

TEST(WorkersTest, ForMayNestAndBeCalledFromOtherThreads) {
  Workers workers(3, 3);
  std::atomic<int64_t> total{0};
  std::vector<std::thread> callers;
  callers.reserve(3);
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&] {
      workers.For(16, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          workers.For(32, 1, [&](int64_t from, int64_t to) { total += to - from; });
        }
      });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 3 * 16 * 32);
}

}  // namespace
}  // namespace mgc
