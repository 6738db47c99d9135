// Copies to shared memory that a thread starts and waits for later (cp.async): here their bytes
// arrive when they are waited for, and not before.

#ifndef MGC_KERNELS_CUDA_EMULATOR_ASYNC_COPIES_H_
#define MGC_KERNELS_CUDA_EMULATOR_ASYNC_COPIES_H_

#include <cstddef>
#include <cstring>
#include <vector>

#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/emulator/note_access.h"

namespace mgc::cuda::emulator {

// Those of one thread. A kernel waits for all that it starts.
class AsyncCopies {
 public:
  static AsyncCopies& OfThread() {
    static thread_local std::vector<AsyncCopies> all(kMostThreads);
    return all[current.thread.x];
  }

  // `from` null: zeros.
  void Start(void* to, const void* from, size_t bytes) { open_.push_back({to, from, bytes}); }
  void Commit() {
    groups_.push_back(std::move(open_));
    open_.clear();
  }
  // Until at most `left` of the groups committed last are on their way.
  void Wait(size_t left) {
    while (groups_.size() > left) {
      for (const Copy& copy : groups_.front()) {
        if (copy.from != nullptr) NoteAccess(copy.from, copy.bytes, false);
        NoteAccess(copy.to, copy.bytes, true);
        copy.from == nullptr ? std::memset(copy.to, 0, copy.bytes)
                             : std::memcpy(copy.to, copy.from, copy.bytes);
      }
      groups_.erase(groups_.begin());
    }
  }

 private:
  struct Copy {
    void* to;
    const void* from;
    size_t bytes;
  };

  std::vector<Copy> open_;
  std::vector<std::vector<Copy>> groups_;
};

}  // namespace mgc::cuda::emulator

#endif  // MGC_KERNELS_CUDA_EMULATOR_ASYNC_COPIES_H_
