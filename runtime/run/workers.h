// The threads that run all ranks of one process, and help inside each other's kernels.
//
// A worker asks a TaskSource for its next task (a rank's next stretch of instructions, a
// collective); when there is none it helps a kernel that another worker has split with For; when
// there is none of those either it spins for a few microseconds and sleeps. So many ranks on few
// cores neither spin nor wait for each other's time slices, and few ranks on many cores still use
// them all.

#ifndef MGC_RUNTIME_RUN_WORKERS_H_
#define MGC_RUNTIME_RUN_WORKERS_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
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
};

// `size` workers: the thread that calls Run, and size - 1 of its own. One Run at a time.
class Workers : public Parallel {
 public:
  // `width`: threads that may work on one kernel, at most `size`. Where the system gives fewer
  // threads, `status` says so; what runs is the same, on those there are.
  Workers(int size, int width);
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
  // May be called from a task, from any other thread, and from inside `body`.
  void For(int64_t n, int64_t grain,
           absl::FunctionRef<void(int64_t begin, int64_t end)> body) override;

 private:
  struct Job;

  static void RunChunks(Job& job);
  Job* JoinJob();
  void Work(int worker);
  void Idle(std::unique_lock<std::mutex>& lock);
  void Finish(Job& job);

  const int size_;
  const int width_;
  std::mutex mutex_;
  std::condition_variable work_;      // something was posted
  std::condition_variable finished_;  // a helper left a job
  // Guarded by mutex_:
  TaskSource* source_ = nullptr;
  Job* jobs_ = nullptr;  // posted jobs, linked
  int sleeping_ = 0;     // workers waiting on work_
  bool stopping_ = false;

  std::atomic<uint64_t> posted_{0};  // how often something was posted
  std::vector<std::thread> threads_;
  absl::Status status_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_RUN_WORKERS_H_
