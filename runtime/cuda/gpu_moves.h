// What ranks that are on GPUs move between them.
//
// Ranks that share GPUs exchange by kernels of our own (runtime/cuda/exchange), on one member's
// GPU, which reaches the others' memory. Ranks that have a GPU each exchange by NCCL, over
// communicators of the plan's groups; so do all those of several processes. Never both: a kernel of
// NCCL's waits for those of other GPUs, and two that wait on one GPU may keep each other from
// starting.
//
// NCCL has a rule: on a communicator all ranks issue the same, in the same order; and what a GPU
// has been given of several communicators must not be able to wait in a circle. Both are the plan's
// order of communication. A rank has one queue of it, and stands at one item at a time, which it
// issues to one stream; two members of a group have the group's collectives, and two ranks the
// transfers between them, in the same order in their queues (graph/verify: matched, and free of
// circles where each item waits for all of its ends). Nothing is reordered here, and ranks that are
// in one process issue as one group of calls.

#ifndef MGC_RUNTIME_CUDA_GPU_MOVES_H_
#define MGC_RUNTIME_CUDA_GPU_MOVES_H_

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/comm/team.h"
#include "runtime/cuda/cuda_memory.h"
#include "runtime/cuda/nccl/nccl_exchanges.h"
#include "runtime/cuda/nccl/nccl_world.h"
#include "runtime/load/load_plan.h"
#include "runtime/run/device.h"

namespace mgc {

// How long an error of NCCL's is kept back in a run of several processes: the launcher may know why
// another one is gone, of which NCCL says only that it is.
inline constexpr std::chrono::milliseconds kToHearWhy(500);

// A rank here, by place.
struct GpuEnd {
  int gpu = 0;
  cudaStream_t stream = nullptr;  // of its communication
};

class GpuMoves {
 public:
  // For the ranks of `plan` that are here. Waits for the other processes, all of which call it.
  // Unimplemented for exchanges that nothing here runs; FailedPrecondition for two ranks of several
  // processes on one GPU; the error of NCCL.
  static absl::StatusOr<std::unique_ptr<GpuMoves>> Create(const LoadedPlan& plan, Team& team,
                                                          std::vector<GpuEnd> ends);

  bool by_nccl() const { return nccl_ != nullptr; }

  // Issues to the streams of the members that are here or, where it is not NCCL's, to that of the
  // rank at `lead`.
  absl::Status RunExchanges(int lead, const ExchangeGroup& group,
                            absl::Span<const TiledExchange> exchanges);
  absl::Status RunTransfer(int place, const FarTransfer& transfer);

  // The first error that NCCL has met, in what was issued before. Any thread.
  absl::Status Check() { return by_nccl() ? nccl_->Check() : absl::OkStatus(); }
  // Ends what waits for other ranks, with an error, and issues nothing more. Any thread.
  void Abort();

 private:
  GpuMoves(RankRange here, bool far, std::vector<GpuEnd> ends)
      : here_(here), far_(far), ends_(std::move(ends)) {}
  absl::Status CheckServes(const LoadedPlan& plan) const;
  absl::Status MakeStaging(const LoadedPlan& plan);
  absl::Status CheckNoneShares(Team& team) const;
  absl::Status Connect(const LoadedPlan& plan, Team& team);
  NcclEnd EndOf(size_t place, ncclComm_t comm) const {
    return {ends_[place].gpu, comm, ends_[place].stream};
  }
  bool BeginIssue();
  void EndIssue(const absl::Status& issued);
  template <class Issue>
  absl::Status IssueByNccl(const Issue& issue);

  const RankRange here_;
  const bool far_;  // there are other processes
  const std::vector<GpuEnd> ends_;
  std::vector<DeviceMemory> staging_;  // by place
  std::unique_ptr<NcclWorld> nccl_;    // null: by kernels of our own

  std::mutex mutex_;  // of what follows
  std::condition_variable issued_;
  int issuing_ = 0;  // threads that call NCCL
  bool given_up_ = false;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_CUDA_GPU_MOVES_H_
