#include "runtime/comm/testing/heap_regions.h"

namespace mgc {

char* HeapWorld::Make(int process, int64_t bytes) {
  constexpr uintptr_t kPage = 4096;
  std::lock_guard<std::mutex> lock(mutex_);
  Region& region = regions_[static_cast<size_t>(process)];
  region.memory.reset(static_cast<char*>(std::calloc(static_cast<size_t>(bytes) + kPage, 1)));
  const auto at = reinterpret_cast<uintptr_t>(region.memory.get());
  region.begin = region.memory.get() + ((at + kPage - 1) / kPage * kPage - at);
  return region.begin;
}

void HeapWorld::Publish(int process) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    regions_[static_cast<size_t>(process)].published = true;
  }
  published_.notify_all();
}

char* HeapWorld::Of(int process) {
  std::unique_lock<std::mutex> lock(mutex_);
  const Region& region = regions_[static_cast<size_t>(process)];
  published_.wait(lock, [&] { return region.published; });
  return region.begin;
}

void HeapWorld::Abort(const absl::Status& status) {
  std::lock_guard<std::mutex> lock(mutex_);
  status_.Update(status);
}

absl::Status HeapWorld::status() {
  std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

}  // namespace mgc
