// The communicators of a plan's ranks, for ranks that have a GPU each.
//
// There is one of all ranks, over which transfers go, and one for each group of each set of axes,
// split from it: so a run needs a single unique id, however many groups it has. All processes of a
// run make them at the same time and in the same order.

#ifndef MGC_RUNTIME_CUDA_NCCL_NCCL_WORLD_H_
#define MGC_RUNTIME_CUDA_NCCL_NCCL_WORLD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/cuda/nccl/nccl_api.h"

namespace mgc {

// A rank here.
struct NcclPlace {
  int rank = 0;
  int gpu = 0;  // of this machine; no two ranks on one
};

// Hands bytes from the process of rank 0, where `id` has them, to all others, where it is to be
// filled. Each process calls it once.
using ShareNcclId = std::function<absl::Status(absl::Span<char> id)>;

// Of one set of axes: for each place the members of its rank's group, ascending. Where a group is
// of some stages only, ranks of others have it too and are not among its members.
using NcclGroups = std::vector<std::vector<int>>;

class NcclWorld {
 public:
  // For the ranks `here` of `ranks` in all. `sets`: as LoadedPlan::groups has them. Waits for the
  // other processes. The error of NCCL, or of `share`.
  static absl::StatusOr<std::unique_ptr<NcclWorld>> Create(int ranks, std::vector<NcclPlace> here,
                                                           absl::Span<const NcclGroups> sets,
                                                           const ShareNcclId& share);
  // Nothing may be under way; else Abort comes first.
  ~NcclWorld();
  NcclWorld(const NcclWorld&) = delete;
  NcclWorld& operator=(const NcclWorld&) = delete;

  const std::vector<NcclPlace>& here() const { return here_; }
  // Of all ranks, for the rank at `place`: a member's number in it is its rank.
  ncclComm_t all(size_t place) const { return all_[place]; }
  // Of the rank's group of one set, where a member's number is its position; null for a rank that
  // is alone in its group.
  ncclComm_t group(size_t set, size_t place) const { return groups_[set][place]; }

  // The first error that NCCL has met since, in any communicator. It waits for nothing; any thread.
  absl::Status Check();
  // Ends what is under way, here and in the other processes, with an error. Any thread.
  void Abort();

 private:
  using Comms = std::vector<ncclComm_t>;  // by place

  explicit NcclWorld(std::vector<NcclPlace> here) : here_(std::move(here)) {}
  absl::Status Init(int ranks, const ShareNcclId& share);
  absl::Status Split(const NcclGroups& groups, int ranks);
  // Calls `make` for each place, with its GPU, as one group of calls.
  template <class Make>
  absl::Status ForEachPlace(const char* what, const Make& make) const;
  template <class Function>
  void ForEachMade(const Function& function) const;

  const std::vector<NcclPlace> here_;
  Comms all_;
  std::vector<Comms> groups_;  // by set; those of sets that are everybody are `all_`
  std::mutex mutex_;           // of what follows, and of asking the communicators
  bool aborted_ = false;
  absl::Status error_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_CUDA_NCCL_NCCL_WORLD_H_
