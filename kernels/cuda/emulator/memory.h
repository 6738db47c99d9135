// The memory of the emulated device, and the host's that is pinned: what lies where.

#ifndef MGC_KERNELS_CUDA_EMULATOR_MEMORY_H_
#define MGC_KERNELS_CUDA_EMULATOR_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace mgc::cuda::emulator {

enum class MemoryKind : uint8_t { kPageable, kPinned, kDevice };

const char* NameOf(MemoryKind kind);

// Bytes that something reads or writes.
struct Range {
  const void* at = nullptr;
  size_t bytes = 0;
  bool written = false;

  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(at); }
  uintptr_t end() const { return begin() + bytes; }
};

// Tables of allocations, of all devices. Each lies between two guards, which nobody may write to,
// and holds bytes of 0xff at first (NaNs, whatever the type). What is freed is kept for a while,
// filled with 0xdd, so that late uses of it are seen. Not thread-safe.
class Memory {
 public:
  // Null when there is no room; `device`: of the device's memory.
  void* Allocate(MemoryKind kind, size_t bytes, int device);
  // "" or what is wrong: then nothing is freed.
  std::string Free(MemoryKind kind, void* at);

  // What holds `at`; kPageable: nothing that was allocated here.
  MemoryKind KindOf(const void* at) const;
  // The device whose memory `at` is; -1: of none.
  int DeviceOf(const void* at) const;
  // Of the allocation that begins at `at`; empty: there is none.
  Range RangeOf(const void* at) const;
  // Of `use`, say "a copy reads": "" or what is wrong with the bytes at `at`.
  std::string Check(const std::string& use, const Range& range) const;
  // "" or that somebody wrote beside an allocation or to a freed one, which is told once.
  std::string CheckGuards();

  // What was allocated, live or freed not long ago, by address. What is freed has no bytes inside.
  struct Region {
    uintptr_t begin = 0, end = 0, guards_begin = 0, guards_end = 0;
    std::string name;
    int device = -1;  // whose it is; -1: the host's
  };
  std::vector<Region> Regions() const;

  // Of each device.
  void set_device_bytes(size_t bytes) { device_bytes_ = bytes; }
  size_t device_bytes() const { return device_bytes_; }
  size_t device_bytes_used(int device) const;
  // "" or a list of what is allocated.
  std::string Live() const;

 private:
  struct Allocation {
    MemoryKind kind = MemoryKind::kDevice;
    int64_t number = 0;  // how many came before
    int device = 0;
    size_t bytes = 0;
    char* block = nullptr;  // with the guards
  };
  using Table = std::map<uintptr_t, Allocation>;

  static const Table::value_type* Holder(const Table& table, uintptr_t at);
  static std::string NameOf(const Table::value_type& entry);
  void Forget();

  Table live_, freed_;  // by their first bytes
  std::deque<uintptr_t> freed_order_;
  size_t freed_bytes_ = 0;
  int64_t allocations_ = 0;
  size_t device_bytes_ = size_t{16} << 30;
  std::map<int, size_t> device_bytes_used_;  // by device
};

}  // namespace mgc::cuda::emulator

#endif  // MGC_KERNELS_CUDA_EMULATOR_MEMORY_H_
