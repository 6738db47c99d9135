#include "kernels/cuda/emulator/memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "kernels/cuda/emulator/fault.h"
#include "kernels/cuda/emulator/sanitizer.h"

namespace mgc::cuda::emulator {
namespace {

constexpr size_t kGuard = 512;  // before and behind; CUDA aligns to 256
constexpr int kGuardByte = 0xa5;
constexpr int kNewByte = 0xff;
constexpr int kFreedByte = 0xdd;
constexpr size_t kMostFreedBytes = size_t{64} << 20;

bool AllAre(const char* at, size_t bytes, int byte) {
  const char wanted = static_cast<char>(byte);
  // Each byte is the one before it, and the first is `wanted`.
  return bytes == 0 || (at[0] == wanted && std::memcmp(at, at + 1, bytes - 1) == 0);
}

size_t WithGuards(size_t bytes) { return kGuard + (bytes + kGuard - 1) / kGuard * kGuard + kGuard; }

}  // namespace

const char* NameOf(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kPageable:
      return "pageable host memory";
    case MemoryKind::kPinned:
      return "pinned host memory";
    case MemoryKind::kDevice:
      return "device memory";
  }
  return "";
}

std::string Memory::NameOf(const Table::value_type& entry) {
  const Allocation& a = entry.second;
  return Text("allocation ", a.number, " (", a.bytes, " bytes of ", emulator::NameOf(a.kind), ")");
}

size_t Memory::device_bytes_used(int device) const {
  const auto found = device_bytes_used_.find(device);
  return found == device_bytes_used_.end() ? 0 : found->second;
}

void* Memory::Allocate(MemoryKind kind, size_t bytes, int device) {
  const bool on_device = kind == MemoryKind::kDevice;
  if (on_device && bytes > device_bytes_ - device_bytes_used(device)) return nullptr;
  char* const block = static_cast<char*>(std::aligned_alloc(kGuard, WithGuards(bytes)));
  if (block == nullptr) return nullptr;
  char* const at = block + kGuard;
  std::memset(block, kGuardByte, kGuard);
  std::memset(at, kNewByte, bytes);
  const size_t behind = WithGuards(bytes) - kGuard - bytes;
  std::memset(at + bytes, kGuardByte, behind);
  Poison(block, kGuard);
  Poison(at + bytes, behind);
  live_[reinterpret_cast<uintptr_t>(at)] = {kind, allocations_++, device, bytes, block};
  if (on_device) device_bytes_used_[device] += bytes;
  return at;
}

std::string Memory::Free(MemoryKind kind, void* at) {
  const auto address = reinterpret_cast<uintptr_t>(at);
  const auto found = live_.find(address);
  if (found == live_.end()) {
    const bool twice = freed_.count(address) > 0;
    return twice ? Text(NameOf(*freed_.find(address)), " is freed twice")
                 : std::string("memory is freed that was not allocated");
  }
  if (found->second.kind != kind) {
    return Text(NameOf(*found), " is freed as ", emulator::NameOf(kind));
  }
  if (kind == MemoryKind::kDevice) device_bytes_used_[found->second.device] -= found->second.bytes;
  std::memset(at, kFreedByte, found->second.bytes);
  Poison(at, found->second.bytes);
  freed_bytes_ += WithGuards(found->second.bytes);
  freed_order_.push_back(address);
  freed_[address] = found->second;
  live_.erase(found);
  Forget();
  return "";
}

// Lets the oldest freed ones go.
void Memory::Forget() {
  while (freed_bytes_ > kMostFreedBytes) {
    const auto oldest = freed_.find(freed_order_.front());
    freed_order_.pop_front();
    const size_t all = WithGuards(oldest->second.bytes);
    freed_bytes_ -= all;
    Unpoison(oldest->second.block, all);
    std::free(oldest->second.block);
    freed_.erase(oldest);
  }
}

const Memory::Table::value_type* Memory::Holder(const Table& table, uintptr_t at) {
  auto after = table.upper_bound(at);
  if (after == table.begin()) return nullptr;
  --after;
  return at <= after->first + after->second.bytes ? &*after : nullptr;
}

MemoryKind Memory::KindOf(const void* at) const {
  const auto* const holder = Holder(live_, reinterpret_cast<uintptr_t>(at));
  return holder == nullptr ? MemoryKind::kPageable : holder->second.kind;
}

int Memory::DeviceOf(const void* at) const {
  const auto* const holder = Holder(live_, reinterpret_cast<uintptr_t>(at));
  if (holder == nullptr || holder->second.kind != MemoryKind::kDevice) return -1;
  return holder->second.device;
}

Range Memory::RangeOf(const void* at) const {
  const auto found = live_.find(reinterpret_cast<uintptr_t>(at));
  return {at, found == live_.end() ? 0 : found->second.bytes, true};
}

std::string Memory::Check(const std::string& use, const Range& range) const {
  const auto* const holder = Holder(live_, range.begin());
  if (holder != nullptr) {
    const uintptr_t end = holder->first + holder->second.bytes;
    if (range.end() <= end) return "";
    return Text(use, " ", range.end() - end, " bytes beyond the end of ", NameOf(*holder));
  }
  const auto* const freed = Holder(freed_, range.begin());
  if (freed != nullptr) return Text(use, " freed memory: ", NameOf(*freed));
  const auto next = live_.lower_bound(range.begin());
  if (next != live_.end() && range.end() > next->first - kGuard) {
    return Text(use, " ", next->first - range.begin(), " bytes before ", NameOf(*next));
  }
  return "";
}

std::string Memory::CheckGuards() {
  if (kAddressSanitizer) return "";  // which has told the moment it happened
  for (auto& entry : live_) {
    Allocation& a = entry.second;
    char* const behind = a.block + kGuard + a.bytes;
    const size_t rest = WithGuards(a.bytes) - kGuard - a.bytes;
    const bool before_is_whole = AllAre(a.block, kGuard, kGuardByte);
    if (before_is_whole && AllAre(behind, rest, kGuardByte)) continue;
    std::memset(a.block, kGuardByte, kGuard);
    std::memset(behind, kGuardByte, rest);
    return Text("bytes were written ", before_is_whole ? "behind the end of " : "before ",
                NameOf(entry));
  }
  return "";
}

std::vector<Memory::Region> Memory::Regions() const {
  std::vector<Region> regions;
  for (const Table* table : {&live_, &freed_}) {
    for (const auto& entry : *table) {
      const bool live = table == &live_;
      const auto block = reinterpret_cast<uintptr_t>(entry.second.block);
      const size_t all = WithGuards(entry.second.bytes);
      const bool on_device = entry.second.kind == MemoryKind::kDevice;
      regions.push_back({entry.first, entry.first + (live ? entry.second.bytes : 0), block,
                         block + all, (live ? "" : "freed ") + NameOf(entry),
                         on_device ? entry.second.device : -1});
    }
  }
  std::sort(regions.begin(), regions.end(),
            [](const Region& a, const Region& b) { return a.guards_begin < b.guards_begin; });
  return regions;
}

std::string Memory::Live() const {
  std::string text;
  for (const auto& entry : live_) text += Text(text.empty() ? "" : ", ", NameOf(entry));
  return text;
}

}  // namespace mgc::cuda::emulator
