// The threads that run all ranks of one process, and help inside each other's kernels.
//
// A worker asks a TaskSource for its next task (a rank's next stretch of instructions, a
// collective); when there is none it helps a kernel or a collective that another worker has handed
// out; when there is none of those either it spins for some microseconds and sleeps.
//
// Work is handed out only when somebody is without any: a worker that runs a split call looks,
// before each of its ranges, whether another is idle, and only then lets others take ranges too. So
// a call is shared whenever a worker is idle, also one that becomes idle while the call runs; and
// where all have ranks to run, a call costs what it would cost alone: no lock, no wake-up, and
// fewer ranges.

#ifndef MGC_RUNTIME_RUN_WORKERS_H_
#define MGC_RUNTIME_RUN_WORKERS_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/parallel.h"

namespace mgc {

// What workers run. Next is called with the workers' mutex held, so that a source keeps its state
// under that mutex and needs no lock of its own.
class TaskSource {
 public:
  static constexpr int kIdle = -1;  // nothing to run now
  static constexpr int kOver = -2;  // nothing runs and nothing ever will

  virtual ~TaskSource() = default;
  // The next task, kIdle or kOver. Once it has returned kOver it is not asked again.
  virtual int Next() = 0;
  // Runs a task, without the mutex. `worker` is in [0, size()) and names the caller's scratch.
  virtual void Run(int task, int worker) = 0;
  // Whether something goes on that moves only when somebody looks after it. Any thread.
  virtual bool wants_help() const { return false; }
  // Looks after it, without the mutex; whether anything moved. Workers without work call it again
  // and again.
  virtual bool Help() { return false; }
};

// `size` workers: the thread that calls Run, and size - 1 of its own. One Run at a time.
class Workers : public Parallel {
 public:
  // `width`: threads that may work on one call, at most `size`. Where the system gives fewer
  // threads, `status` says so; what runs is the same, on those there are.
  Workers(int size, int width, SimdLevel level = BestSimdLevel());
  ~Workers() override;
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // OK, or ResourceExhausted when the system gave fewer threads than were asked for.
  const absl::Status& status() const { return status_; }
  int size() const { return size_; }
  std::mutex& mutex() { return mutex_; }

  // Runs the source's tasks on all workers until it is over.
  void Run(TaskSource& source);
  // To be called, with the mutex held, when a source has a new task or is over.
  void Announce();

  int width() const override { return width_; }
  int hands() const override;
  // May be called from a task, from any other thread, and from inside `body`.
  void ForChunks(int64_t n, int64_t chunk,
                 absl::FunctionRef<void(int64_t begin, int64_t end, int slot)> body) override;

  // For tests: `watch` is called by every thread before it looks for its next range of a call,
  // with its slot in that call. To be set while nothing runs.
  void Watch(std::function<void(int slot)> watch) { watch_ = std::move(watch); }

 private:
  struct Job;

  void RunChunks(Job& job, int slot);
  void Share(Job& job);
  Job* JoinJob(int* slot);
  void Work(int worker);
  void Busy(std::unique_lock<std::mutex>& lock, absl::FunctionRef<void()> work);
  void Idle(std::unique_lock<std::mutex>& lock);
  void LookAfter(TaskSource& source, std::unique_lock<std::mutex>& lock);
  void Finish(Job& job);

  const int size_;
  const int width_;
  std::function<void(int slot)> watch_;
  std::mutex mutex_;
  std::condition_variable work_;      // something was posted
  std::condition_variable finished_;  // a helper left a job
  // Guarded by mutex_:
  TaskSource* source_ = nullptr;
  Job* jobs_ = nullptr;  // handed out, linked
  int sleeping_ = 0;     // workers waiting on work_
  int helping_ = 0;      // workers that look after the source
  bool stopping_ = false;

  std::atomic<uint64_t> posted_{0};  // how often something was posted
  std::atomic<int> idle_{0};         // workers without work; changed under the mutex only
  std::vector<std::thread> threads_;
  absl::Status status_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_RUN_WORKERS_H_
