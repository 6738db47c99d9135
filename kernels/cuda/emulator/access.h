// Every access of device code to memory, where the compiler tells of it: found are accesses outside
// of allocations, two that no barrier orders, and reads of shared memory that nobody has written.
//
// Device code tells of its accesses when it is compiled with -fsanitize=thread and linked without
// (the configuration gpu-races): the compiler then calls functions of ThreadSanitizer, which are
// those of access_hooks.cc here. In other builds nothing of this costs anything.
//
// Barriers of the block order all its threads, __syncwarp the lanes of its mask, shuffles and votes
// none (as CUDA has it), and nothing orders blocks of one launch. Atomics are not watched.

#ifndef MGC_KERNELS_CUDA_EMULATOR_ACCESS_H_
#define MGC_KERNELS_CUDA_EMULATOR_ACCESS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/emulator/memory.h"

namespace mgc::cuda::emulator {

// Of one launch on one thread of the host.
class AccessWatch {
 public:
  static bool enabled();
  static void Enable();

  // Begins a launch: what allocations there are.
  void BeginLaunch(const std::vector<Memory::Region>& allocations);
  // Begins a block with its shared variables.
  void BeginBlock(size_t threads, const std::vector<Range>& shared);
  // All threads have met; the lanes of a warp in `mask` have.
  void MeetBlock() { ++epoch_; }
  void MeetWarp(size_t first_thread, size_t lanes, unsigned mask);

  // "" or what is wrong with an access of a thread.
  std::string Access(size_t thread, const void* at, size_t bytes, bool writes);

 private:
  // Somebody's last access to a byte.
  struct Mark {
    uint32_t launch = 0, block = 0, epoch = 0, time = 0;
    uint16_t thread = 0;
  };
  struct Shadow {
    Mark write, read, other_read;
  };
  using Page = std::array<Shadow, 256>;  // of so many bytes
  struct Watched {
    Memory::Region region;
    bool shared = false;
    std::vector<std::unique_ptr<Page>> pages;  // made when they are first used
  };

  static Shadow* ShadowOf(Watched* watched, size_t byte);
  Watched* Find(uintptr_t at);
  bool IsKnown(const Mark& mark, bool shared) const;
  bool IsBefore(const Mark& mark, size_t thread) const;
  std::string AccessByte(size_t thread, bool writes, bool shared, Shadow* shadow);
  std::string Conflict(const Mark& other, const char* did) const;
  uint32_t& Clock(size_t thread, size_t lane) { return clocks_[thread * 32 + lane]; }

  std::vector<Watched> allocations_, shared_;  // by address
  uint32_t launch_ = 0, block_ = 0, epoch_ = 0;
  std::vector<uint32_t> clocks_;  // of each thread, what it knows of its warp's lanes
};

}  // namespace mgc::cuda::emulator

#endif  // MGC_KERNELS_CUDA_EMULATOR_ACCESS_H_
