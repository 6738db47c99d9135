#include "kernels/parallel.h"

#include <algorithm>
#include <atomic>

namespace mgc {

void SerialParallel::For(int64_t n, int64_t /*grain*/,
                         absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  if (n > 0) body(0, n);
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
