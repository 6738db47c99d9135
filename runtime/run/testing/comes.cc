#include "runtime/run/testing/comes.h"

#include <chrono>
#include <thread>

namespace mgc {

bool Comes(absl::FunctionRef<bool()> fact) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!fact()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace mgc
