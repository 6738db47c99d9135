#include "runtime/run/workers.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/run/testing/comes.h"

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

// Two tasks at the same time, each on a worker of its own.
class Pair : public TaskSource {
 public:
  Pair(Workers& workers, std::function<void(int task)> body)
      : workers_(workers), body_(std::move(body)) {}

  int Next() override {
    if (taken_ < 2) return taken_++;
    return done_ == 2 ? kOver : kIdle;
  }

  void Run(int task, int /*worker*/) override {
    body_(task);
    std::lock_guard<std::mutex> lock(workers_.mutex());
    ++done_;
    workers_.Announce();
  }

 private:
  Workers& workers_;
  const std::function<void(int task)> body_;
  int taken_ = 0;
  int done_ = 0;
};

TEST(WorkersTest, AWorkerThatBecomesIdleJoinsACallThatRuns) {
  Workers workers(2, 2);
  std::atomic<bool> begun{false};
  std::atomic<bool> taken{false};  // the other task
  std::atomic<bool> helped{false};
  Pair source(workers, [&](int task) {
    if (task == 1) {
      taken = true;
      EXPECT_TRUE(Comes([&] { return begun.load(); }));
      return;  // and finds nothing else to do
    }
    workers.ForChunks(4, 1, [&](int64_t begin, int64_t /*end*/, int slot) {
      begun = true;
      if (slot == 1) helped = true;
      if (slot != 0) return;
      // Nobody is idle before the first range, so that only a later look can find the helper.
      if (begin == 0) {
        EXPECT_TRUE(Comes([&] { return taken && workers.hands() == 2; }));
      } else if (begin > 1) {
        EXPECT_TRUE(Comes([&] { return helped.load(); }));
      }
    });
  });
  workers.Run(source);
  EXPECT_TRUE(helped);
}

TEST(WorkersTest, WhereAllHaveTasksACallStaysWithItsCaller) {
  Workers workers(2, 2);
  std::atomic<int> arrived{0};
  std::atomic<int> finished{0};
  std::atomic<int> ranges{0};
  Pair source(workers, [&](int /*task*/) {
    ++arrived;
    EXPECT_TRUE(Comes([&] { return arrived == 2; }));
    const std::thread::id caller = std::this_thread::get_id();
    workers.ForChunks(100, 1, [&](int64_t /*begin*/, int64_t /*end*/, int slot) {
      EXPECT_EQ(slot, 0);
      EXPECT_EQ(std::this_thread::get_id(), caller);
      EXPECT_EQ(workers.hands(), 1);
      ++ranges;
    });
    ++finished;
    EXPECT_TRUE(Comes([&] { return finished == 2; }));
  });
  workers.Run(source);
  EXPECT_EQ(ranges, 200);
}

TEST(WorkersTest, NoMoreThanTheWidthWorkOnACall) {
  Workers workers(4, 2);
  ASSERT_TRUE(Comes([&] { return workers.hands() == 2; }));
  std::vector<std::atomic<int>> busy(2);
  std::atomic<int> total{0};
  workers.ForChunks(1000, 1, [&](int64_t begin, int64_t end, int slot) {
    ASSERT_LT(slot, 2);
    EXPECT_EQ(busy[static_cast<size_t>(slot)].exchange(1), 0);
    total += static_cast<int>(end - begin);
    busy[static_cast<size_t>(slot)] = 0;
  });
  EXPECT_EQ(total, 1000);
}

}  // namespace
}  // namespace mgc
