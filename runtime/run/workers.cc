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

constexpr auto kSpin = std::chrono::microseconds(5);
constexpr int64_t kChunksPerThread = 4;  // so that ranges of unequal cost even out

// Whether `done` became true within the spinning time.
bool SpinUntil(absl::FunctionRef<bool()> done) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
#if defined(__x86_64__)
      _mm_pause();
#endif
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

}  // namespace

// One call of For. It lives on the caller's stack; a helper's last touch of it is under the mutex.
struct Workers::Job {
  absl::FunctionRef<void(int64_t begin, int64_t end)> body;
  int64_t n;
  int64_t chunk;
  std::atomic<int64_t> next{0};
  std::atomic<int> helpers{0};  // changed under the mutex only
  Job* link = nullptr;
};

Workers::Workers(int size, int width)
    : size_(std::max(size, 1)), width_(std::clamp(width, 1, size_)) {
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
}

// Worker 0 returns when the source is over, the others when the workers are destroyed.
void Workers::Work(int worker) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (worker == 0 ? source_ != nullptr : !stopping_) {
    const int task = source_ != nullptr ? source_->Next() : TaskSource::kIdle;
    if (task >= 0) {
      TaskSource& source = *source_;
      lock.unlock();
      source.Run(task, worker);
      lock.lock();
    } else if (task == TaskSource::kOver) {
      source_ = nullptr;
      posted_.fetch_add(1, std::memory_order_release);
      work_.notify_all();  // worker 0 may be asleep
    } else if (Job* job = JoinJob(); job != nullptr) {
      lock.unlock();
      RunChunks(*job);
      lock.lock();
      if (job->helpers.fetch_sub(1, std::memory_order_release) == 1) finished_.notify_all();
    } else {
      Idle(lock);
    }
  }
}

void Workers::Idle(std::unique_lock<std::mutex>& lock) {
  const uint64_t seen = posted_.load(std::memory_order_acquire);
  lock.unlock();
  SpinUntil([&] { return posted_.load(std::memory_order_acquire) != seen; });
  lock.lock();
  if (posted_.load(std::memory_order_acquire) != seen) return;
  ++sleeping_;
  work_.wait(lock);
  --sleeping_;
}

void Workers::RunChunks(Job& job) {
  for (;;) {
    const int64_t begin = job.next.fetch_add(job.chunk, std::memory_order_relaxed);
    if (begin >= job.n) return;
    job.body(begin, std::min(begin + job.chunk, job.n));
  }
}

Workers::Job* Workers::JoinJob() {
  for (Job* job = jobs_; job != nullptr; job = job->link) {
    if (job->next.load(std::memory_order_relaxed) < job->n) {
      job->helpers.fetch_add(1, std::memory_order_relaxed);
      return job;
    }
  }
  return nullptr;
}

void Workers::Finish(Job& job) {
  SpinUntil([&] { return job.helpers.load(std::memory_order_acquire) == 0; });
  std::unique_lock<std::mutex> lock(mutex_);
  Job** link = &jobs_;
  while (*link != &job) link = &(*link)->link;
  *link = job.link;
  finished_.wait(lock, [&] { return job.helpers.load(std::memory_order_acquire) == 0; });
}

void Workers::For(int64_t n, int64_t grain,
                  absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  if (n <= 0) return;
  const int64_t shares = kChunksPerThread * width_;
  const int64_t share = (n + shares - 1) / shares;
  const int64_t chunk = (std::max(share, grain) + grain - 1) / grain * grain;
  if (width_ == 1 || chunk >= n) {
    body(0, n);
    return;
  }
  Job job{body, n, chunk};
  int wake = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    job.link = jobs_;
    jobs_ = &job;
    posted_.fetch_add(1, std::memory_order_release);
    wake = static_cast<int>(std::min<int64_t>((n - 1) / chunk, sleeping_));
  }
  for (int i = 0; i < wake; ++i) work_.notify_one();
  RunChunks(job);
  Finish(job);
}

}  // namespace mgc
