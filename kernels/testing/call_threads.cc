#include "kernels/testing/call_threads.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace mgc {

void CallThreads::For(int64_t n, int64_t grain,
                      absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  const int64_t share = (n + width_ - 1) / width_;
  const int64_t chunk = (share + grain - 1) / grain * grain;
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    for (int64_t begin; (begin = next.fetch_add(chunk)) < n;) {
      body(begin, std::min(begin + chunk, n));
    }
  };
  std::vector<std::thread> helpers;
  for (int64_t at = chunk; at < n; at += chunk) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace mgc
