#include "runtime/run/workers.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "absl/strings/str_cat.h"

namespace mgc {
namespace {

// To sleep and be woken takes tens of microseconds, to which the gaps between a kernel's blocks are
// small. Who waits for a range has no rank it could run, so that it may wait awake for longer.
constexpr auto kSpinForWork = std::chrono::microseconds(50);
constexpr auto kSpinForRange = std::chrono::microseconds(200);
// Who looks after what comes from elsewhere asks in a row for a while, then lets others have the
// processor in between, then naps: processes may be more than processors.
constexpr auto kAskInARow = std::chrono::microseconds(30);
constexpr auto kAskAndYield = std::chrono::microseconds(500);
constexpr auto kNap = std::chrono::microseconds(30);

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Whether `done` became true within `time`.
bool SpinUntil(std::chrono::microseconds time, absl::FunctionRef<bool()> done) {
  const auto end = std::chrono::steady_clock::now() + time;
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      Pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

}  // namespace

// A call that is split. It lives on the caller's stack; a helper's last touch of it is under the
// mutex.
struct Workers::Job {
  absl::FunctionRef<void(int64_t begin, int64_t end, int slot)> body;
  int64_t n;
  int64_t chunk;
  std::atomic<int64_t> next{0};
  std::atomic<int> helpers{0};  // changed under the mutex only
  bool handed_out = false;      // of the caller
  // Guarded by the mutex:
  int slots = 1;  // given away; the first is the caller's
  Job* link = nullptr;

  bool has_more() const { return next.load(std::memory_order_relaxed) < n; }
};

Workers::Workers(int size, int width, SimdLevel level)
    : Parallel(level), size_(std::max(size, 1)), width_(std::clamp(width, 1, size_)) {
  try {
    threads_.reserve(static_cast<size_t>(size_) - 1);
    for (int worker = 1; worker < size_; ++worker) {
      threads_.emplace_back([this, worker] { Work(worker); });
    }
  } catch (const std::system_error& error) {
    status_ = absl::ResourceExhaustedError(absl::StrCat("the system gives ", threads_.size() + 1,
                                                        " of ", size_, " threads: ", error.what()));
  }
}

Workers::~Workers() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    posted_.fetch_add(1, std::memory_order_release);
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::Announce() {
  posted_.fetch_add(1, std::memory_order_release);
  if (sleeping_ > 0) work_.notify_one();
}

void Workers::Run(TaskSource& source) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    source_ = &source;
    posted_.fetch_add(1, std::memory_order_release);
  }
  work_.notify_all();
  Work(0);
  std::unique_lock<std::mutex> lock(mutex_);
  finished_.wait(lock, [this] { return helping_ == 0; });
}

// Worker 0 returns when the source is over, the others when the workers are destroyed.
void Workers::Work(int worker) {
  std::unique_lock<std::mutex> lock(mutex_);
  idle_.fetch_add(1, std::memory_order_relaxed);
  while (worker == 0 ? source_ != nullptr : !stopping_) {
    const int task = source_ != nullptr ? source_->Next() : TaskSource::kIdle;
    if (task >= 0) {
      TaskSource& source = *source_;
      Busy(lock, [&] { source.Run(task, worker); });
    } else if (task == TaskSource::kOver) {
      source_ = nullptr;
      posted_.fetch_add(1, std::memory_order_release);
      work_.notify_all();  // worker 0 may be asleep
    } else if (int slot = 0; Job* job = JoinJob(&slot)) {
      Busy(lock, [&] { RunChunks(*job, slot); });
      if (job->helpers.fetch_sub(1, std::memory_order_release) == 1) finished_.notify_all();
    } else if (source_ != nullptr && source_->wants_help()) {
      LookAfter(*source_, lock);
    } else {
      Idle(lock);
    }
  }
  idle_.fetch_sub(1, std::memory_order_relaxed);
}

// Runs something without the mutex. Who has helped is idle again before the caller can know that
// the help has ended, so that its next call is cut for both.
void Workers::Busy(std::unique_lock<std::mutex>& lock, absl::FunctionRef<void()> work) {
  idle_.fetch_sub(1, std::memory_order_relaxed);
  lock.unlock();
  work();
  lock.lock();
  idle_.fetch_add(1, std::memory_order_relaxed);
}

void Workers::Idle(std::unique_lock<std::mutex>& lock) {
  const uint64_t seen = posted_.load(std::memory_order_acquire);
  lock.unlock();
  SpinUntil(kSpinForWork, [&] { return posted_.load(std::memory_order_acquire) != seen; });
  lock.lock();
  if (posted_.load(std::memory_order_acquire) == seen) {
    ++sleeping_;
    work_.wait(lock);
    --sleeping_;
  }
}

// Until there is something to do, or nothing to look after.
void Workers::LookAfter(TaskSource& source, std::unique_lock<std::mutex>& lock) {
  using Clock = std::chrono::steady_clock;
  const uint64_t seen = posted_.load(std::memory_order_acquire);
  ++helping_;
  lock.unlock();
  auto moved_at = Clock::now();
  while (posted_.load(std::memory_order_acquire) == seen && source.wants_help()) {
    if (source.Help()) {
      moved_at = Clock::now();
      continue;
    }
    const auto waited = Clock::now() - moved_at;
    if (waited > kAskAndYield) {
      std::this_thread::sleep_for(kNap);
    } else if (waited > kAskInARow) {
      std::this_thread::yield();
    } else {
      Pause();
    }
  }
  lock.lock();
  if (--helping_ == 0) finished_.notify_all();
}

int Workers::hands() const { return std::min(1 + idle_.load(std::memory_order_relaxed), width_); }

void Workers::RunChunks(Job& job, int slot) {
  for (;;) {
    if (watch_) watch_(slot);
    const int64_t begin = job.next.fetch_add(job.chunk, std::memory_order_relaxed);
    if (begin >= job.n) return;
    if (slot == 0) Share(job);
    job.body(begin, std::min(begin + job.chunk, job.n), slot);
  }
}

// Lets others take ranges of a call, if one of them is idle. Whoever becomes so later finds it.
void Workers::Share(Job& job) {
  if (job.handed_out || !job.has_more() || hands() == 1) return;
  job.handed_out = true;
  const int64_t left = job.n - job.next.load(std::memory_order_relaxed);
  int64_t wake = std::min<int64_t>((left + job.chunk - 1) / job.chunk, width_ - 1);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    job.link = jobs_;
    jobs_ = &job;
    posted_.fetch_add(1, std::memory_order_release);
    wake = std::min<int64_t>(wake, sleeping_);
  }
  for (int64_t i = 0; i < wake; ++i) work_.notify_one();
}

// A call whose ranges are to be taken, and a slot in it; null when there is none. Mutex held.
Workers::Job* Workers::JoinJob(int* slot) {
  for (Job* job = jobs_; job != nullptr; job = job->link) {
    if (!job->has_more() || job->slots == width_) continue;
    job->helpers.fetch_add(1, std::memory_order_relaxed);
    *slot = job->slots++;
    return job;
  }
  return nullptr;
}

void Workers::Finish(Job& job) {
  SpinUntil(kSpinForRange, [&] { return job.helpers.load(std::memory_order_acquire) == 0; });
  std::unique_lock<std::mutex> lock(mutex_);
  Job** link = &jobs_;
  while (*link != &job) link = &(*link)->link;
  *link = job.link;
  finished_.wait(lock, [&] { return job.helpers.load(std::memory_order_acquire) == 0; });
}

void Workers::ForChunks(int64_t n, int64_t chunk,
                        absl::FunctionRef<void(int64_t begin, int64_t end, int slot)> body) {
  if (n <= 0) return;
  if (width_ == 1) {
    body(0, n, 0);
    return;
  }
  Job job{body, n, chunk};
  RunChunks(job, 0);
  if (job.handed_out) Finish(job);
}

}  // namespace mgc
