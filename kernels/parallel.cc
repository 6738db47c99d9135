#include "kernels/parallel.h"

#include <algorithm>

namespace mgc {
namespace {

constexpr int64_t kChunksPerThread = 4;  // so that ranges of unequal cost even out
constexpr int64_t kLeastGrains = 4;      // of a call that is worth waking a thread for

}  // namespace

void Parallel::For(int64_t n, int64_t grain,
                   absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  if (n <= 0) return;
  if (width() == 1 || n < kLeastGrains * grain) {
    body(0, n);
    return;
  }
  const int64_t shares = kChunksPerThread * hands();
  const int64_t share = (n + shares - 1) / shares;
  const int64_t chunk = (std::max(share, grain) + grain - 1) / grain * grain;
  ForChunks(n, chunk, [&](int64_t begin, int64_t end, int /*slot*/) { body(begin, end); });
}

void SerialParallel::ForChunks(int64_t n, int64_t /*chunk*/,
                               absl::FunctionRef<void(int64_t begin, int64_t end, int slot)> body) {
  if (n > 0) body(0, n, 0);
}

void ForEachTask(Parallel& parallel, int64_t tasks,
                 absl::FunctionRef<void(int64_t task, int slot)> body) {
  parallel.ForChunks(tasks, 1, [&](int64_t begin, int64_t end, int slot) {
    for (int64_t task = begin; task < end; ++task) body(task, slot);
  });
}

}  // namespace mgc
