// Products that a thread of a warpgroup starts and waits for later (wgmma): here they happen when
// they are waited for, and not before; so what is overwritten too early gives wrong numbers.

#ifndef MGC_KERNELS_CUDA_EMULATOR_GROUP_PRODUCTS_H_
#define MGC_KERNELS_CUDA_EMULATOR_GROUP_PRODUCTS_H_

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "kernels/cuda/emulator/emulator.h"

namespace mgc::cuda::emulator {

// Whether the GPU has warpgroups, for what this thread launches from now on; it has.
void SetGroups(bool has);
bool HasGroups();

// Those of one thread. A kernel waits for all that it starts.
class GroupProducts {
 public:
  static GroupProducts& OfThread() {
    static thread_local std::vector<GroupProducts> all(kMostThreads);
    return all[current.thread.x];
  }

  void Start(std::function<void()> product) { open_.push_back(std::move(product)); }
  void Commit() {
    groups_.push_back(std::move(open_));
    open_.clear();
  }
  // Until at most `left` of the groups committed last are on their way. All lanes of a warp call
  // it.
  void Wait(size_t left) {
    while (groups_.size() > left) {
      const std::vector<std::function<void()>> products = std::move(groups_.front());
      groups_.erase(groups_.begin());
      for (const std::function<void()>& product : products) product();
    }
  }

 private:
  std::vector<std::function<void()>> open_;
  std::vector<std::vector<std::function<void()>>> groups_;
};

}  // namespace mgc::cuda::emulator

#endif  // MGC_KERNELS_CUDA_EMULATOR_GROUP_PRODUCTS_H_
