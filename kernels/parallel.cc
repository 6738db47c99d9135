#include "kernels/parallel.h"

#include <algorithm>
#include <chrono>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mgc {
namespace {

constexpr auto kSpin = std::chrono::microseconds(5);

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Whether `done` became true within the spinning time.
bool SpinUntil(absl::FunctionRef<bool()> done) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      Pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

}  // namespace

void SerialParallel::For(int64_t n, int64_t /*grain*/,
                         absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  if (n > 0) body(0, n);
}

// One call of For. It lives on the caller's stack, so a helper's last touch of it is under the
// pool's mutex.
struct ThreadParallel::Job {
  absl::FunctionRef<void(int64_t begin, int64_t end)> body;
  int64_t n;
  int64_t chunk;
  std::atomic<int64_t> next{0};
  std::atomic<int> helpers{0};  // changed under mutex_ only
  Job* link = nullptr;
};

ThreadParallel::ThreadParallel(int width) : width_(std::max(width, 1)) {
  for (int i = 1; i < width_; ++i) threads_.emplace_back([this] { Help(); });
}

ThreadParallel::~ThreadParallel() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  posted_.fetch_add(1, std::memory_order_release);
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadParallel::RunChunks(Job& job) {
  for (;;) {
    const int64_t begin = job.next.fetch_add(job.chunk, std::memory_order_relaxed);
    if (begin >= job.n) return;
    job.body(begin, std::min(begin + job.chunk, job.n));
  }
}

ThreadParallel::Job* ThreadParallel::JoinJobLocked() {
  for (Job* job = jobs_; job != nullptr; job = job->link) {
    if (job->next.load(std::memory_order_relaxed) < job->n) {
      job->helpers.fetch_add(1, std::memory_order_relaxed);
      return job;
    }
  }
  return nullptr;
}

void ThreadParallel::SpinForWork(uint64_t seen) const {
  SpinUntil([&] { return posted_.load(std::memory_order_acquire) != seen; });
}

void ThreadParallel::Help() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    if (Job* job = JoinJobLocked()) {
      lock.unlock();
      RunChunks(*job);
      lock.lock();
      if (job->helpers.fetch_sub(1, std::memory_order_release) == 1) finished_.notify_all();
      continue;
    }
    const uint64_t seen = posted_.load(std::memory_order_acquire);
    lock.unlock();
    SpinForWork(seen);
    lock.lock();
    if (stopping_ || posted_.load(std::memory_order_acquire) != seen) continue;
    ++sleeping_;
    work_.wait(lock);
    --sleeping_;
  }
}

void ThreadParallel::Finish(Job& job) {
  SpinUntil([&] { return job.helpers.load(std::memory_order_acquire) == 0; });
  std::unique_lock<std::mutex> lock(mutex_);
  Job** link = &jobs_;
  while (*link != &job) link = &(*link)->link;
  *link = job.link;
  finished_.wait(lock, [&] { return job.helpers.load(std::memory_order_acquire) == 0; });
}

void ThreadParallel::For(int64_t n, int64_t grain,
                         absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  if (n <= 0) return;
  const int64_t ranges = int64_t{4} * width_;  // four a thread even out their unequal costs
  const int64_t share = (n + ranges - 1) / ranges;
  const int64_t chunk = (std::max(share, grain) + grain - 1) / grain * grain;
  if (width_ == 1 || chunk >= n) {
    body(0, n);
    return;
  }
  Job job{body, n, chunk};
  const int64_t useful = (n + chunk - 1) / chunk - 1;
  int wake = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    job.link = jobs_;
    jobs_ = &job;
    posted_.fetch_add(1, std::memory_order_release);
    wake = static_cast<int>(std::min<int64_t>(useful, sleeping_));
  }
  for (int i = 0; i < wake; ++i) work_.notify_one();
  RunChunks(job);
  Finish(job);
}

void ForEachTask(Parallel& parallel, int64_t tasks,
                 absl::FunctionRef<void(int64_t task, int slot)> body) {
  std::atomic<int64_t> next{0};
  const int64_t slots = std::min<int64_t>(parallel.width(), tasks);
  parallel.For(slots, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot) {
      for (int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
        body(task, static_cast<int>(slot));
      }
    }
  });
}

}  // namespace mgc
