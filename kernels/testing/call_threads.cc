#include "kernels/testing/call_threads.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace mgc {

void CallThreads::ForChunks(int64_t n, int64_t chunk,
                            absl::FunctionRef<void(int64_t begin, int64_t end, int slot)> body) {
  std::atomic<int64_t> next{0};
  const auto work = [&](int slot) {
    for (int64_t begin; (begin = next.fetch_add(chunk)) < n;) {
      body(begin, std::min(begin + chunk, n), slot);
    }
  };
  const int64_t threads = std::min<int64_t>(width_, (n + chunk - 1) / chunk);
  std::vector<std::thread> helpers;
  for (int slot = 1; slot < threads; ++slot) helpers.emplace_back(work, slot);
  work(0);
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace mgc
