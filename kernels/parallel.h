// How a kernel uses more than one core: it splits its output over a Parallel. A kernel must give
// the same bits for every width and every split, so it never splits a sum.
#ifndef MGC_KERNELS_PARALLEL_H_
#define MGC_KERNELS_PARALLEL_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace mgc {

class Parallel {
 public:
  virtual ~Parallel() = default;

  // The most threads that may work on one call at the same time, the caller included; at least 1.
  virtual int width() const = 0;

  // Calls `body(begin, end)` for disjoint ranges that cover [0, n), perhaps on several threads at
  // once, and returns when all are done. Ranges begin at multiples of `grain` (>= 1), the least
  // worth a hand-over. `body` may call For itself.
  virtual void For(int64_t n, int64_t grain,
                   absl::FunctionRef<void(int64_t begin, int64_t end)> body) = 0;
};

// Everything on the calling thread.
class SerialParallel : public Parallel {
 public:
  int width() const override { return 1; }
  void For(int64_t n, int64_t grain,
           absl::FunctionRef<void(int64_t begin, int64_t end)> body) override;
};

// A pool of `width` - 1 threads that help whoever calls. The caller always works on its own ranges,
// so a call never waits for a busy pool; several threads may call at once, and calls may nest. An
// idle thread spins for a few microseconds, then sleeps. For needs no memory from the heap.
class ThreadParallel : public Parallel {
 public:
  explicit ThreadParallel(int width);
  ~ThreadParallel() override;
  ThreadParallel(const ThreadParallel&) = delete;
  ThreadParallel& operator=(const ThreadParallel&) = delete;

  int width() const override { return width_; }
  void For(int64_t n, int64_t grain,
           absl::FunctionRef<void(int64_t begin, int64_t end)> body) override;

 private:
  struct Job;

  static void RunChunks(Job& job);
  Job* JoinJobLocked();
  void Help();
  void SpinForWork(uint64_t seen) const;
  void Finish(Job& job);

  const int width_;
  std::mutex mutex_;
  std::condition_variable work_;      // a job was posted, or the pool stops
  std::condition_variable finished_;  // a helper left a job
  Job* jobs_ = nullptr;               // posted jobs, linked; guarded by mutex_
  int sleeping_ = 0;                  // helpers waiting on work_; guarded by mutex_
  bool stopping_ = false;             // guarded by mutex_
  std::atomic<uint64_t> posted_{0};   // jobs ever posted
  std::vector<std::thread> threads_;
};

// Calls `body(task, slot)` once for every task in [0, tasks), in no fixed order. `slot` <
// parallel.width() is not shared by two calls at the same time: it names the caller's scratch.
void ForEachTask(Parallel& parallel, int64_t tasks,
                 absl::FunctionRef<void(int64_t task, int slot)> body);

}  // namespace mgc

#endif  // MGC_KERNELS_PARALLEL_H_
