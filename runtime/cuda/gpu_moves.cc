#include "runtime/cuda/gpu_moves.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"
#include "runtime/comm/run_exchanges.h"
#include "runtime/cuda/exchange/exchanges.h"
#include "runtime/cuda/gpu_places.h"
#include "runtime/run/host.h"

namespace mgc {
namespace {

// What threads get to come back from NCCL by themselves before its communicators are given up. One
// that still waits then waits for another process, which is what giving up ends.
constexpr auto kToComeBack = std::chrono::milliseconds(200);

// Calls `function` for all exchanges of one collective, for each; stops at the first error.
template <class Function>
absl::Status ForEachCollective(const LoadedPlan& plan, const Function& function) {
  for (const LoadedSegment& segment : plan.segments) {
    for (const LoadedExchange& exchange : segment.exchanges) {
      MGC_RETURN_IF_ERROR(function(exchange.parts));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> NameOfGpu(int gpu) {
  char id[32] = {};
  MGC_RETURN_IF_ERROR(CudaStatus(cudaDeviceGetPCIBusId(id, sizeof(id), gpu), "a GPU's name"));
  return absl::StrCat(id, " of ", HostName());
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuMoves>> GpuMoves::Create(const LoadedPlan& plan, Team& team,
                                                           std::vector<GpuEnd> ends) {
  std::vector<int> by_place;
  for (const GpuEnd& end : ends) by_place.push_back(end.gpu);
  const size_t gpus = GpusIn(by_place).size();
  const bool by_nccl = team.size() > 1 || (gpus > 1 && gpus == ends.size());
  std::unique_ptr<GpuMoves> moves(new GpuMoves(plan.local, team.size() > 1, std::move(ends)));
  if (!by_nccl) {
    MGC_RETURN_IF_ERROR(moves->CheckServes(plan));
    return moves;
  }
  MGC_RETURN_IF_ERROR(team.Agree(moves->MakeStaging(plan)));
  MGC_RETURN_IF_ERROR(moves->CheckNoneShares(team));
  MGC_RETURN_IF_ERROR(moves->Connect(plan, team));
  return moves;
}

absl::Status GpuMoves::CheckServes(const LoadedPlan& plan) const {
  return ForEachCollective(plan, [](const std::vector<Exchange>& parts) {
    for (const Exchange& part : parts) MGC_RETURN_IF_ERROR(cuda::CheckIssuable(part));
    return absl::OkStatus();
  });
}

// Each rank's has room for what its largest collective needs: it runs one at a time.
absl::Status GpuMoves::MakeStaging(const LoadedPlan& plan) {
  int64_t most = 0;
  MGC_RETURN_IF_ERROR(ForEachCollective(plan, [&](const std::vector<Exchange>& parts) {
    for (const Exchange& part : parts) MGC_RETURN_IF_ERROR(CheckServed(part));
    most = std::max(most, NcclStagingBytes(parts));
    return absl::OkStatus();
  }));
  for (const GpuEnd& end : ends_) {
    MGC_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(end.gpu), "the GPU of a rank"));
    MGC_ASSIGN_OR_RETURN(DeviceMemory staging, MakeDeviceMemory(most));
    MGC_RETURN_IF_ERROR(CudaStatus(cudaDeviceSynchronize(), "the first zeros"));
    staging_.push_back(std::move(staging));
  }
  return absl::OkStatus();
}

// NCCL would refuse it too, and not say which ranks.
absl::Status GpuMoves::CheckNoneShares(Team& team) const {
  std::string mine;
  absl::Status named;
  for (size_t place = 0; place < ends_.size() && named.ok(); ++place) {
    const absl::StatusOr<std::string> name = NameOfGpu(ends_[place].gpu);
    named = name.status();
    if (name.ok()) absl::StrAppend(&mine, place == 0 ? "" : "\n", *name);
  }
  MGC_RETURN_IF_ERROR(team.Agree(named));
  MGC_ASSIGN_OR_RETURN(const std::vector<std::string> all, team.Gather(mine));
  std::map<std::string, int> ranks;  // by GPU
  int rank = 0;
  for (const std::string& process : all) {
    for (const absl::string_view gpu : absl::StrSplit(process, '\n')) {
      const auto [it, is_new] = ranks.try_emplace(std::string(gpu), rank);
      if (!is_new) {
        return absl::FailedPreconditionError(absl::StrCat(
            "ranks ", it->second, " and ", rank, ", of several processes, are both on GPU ", gpu,
            "; give each process GPUs of its own, as many as it has ranks"));
      }
      ++rank;
    }
  }
  return absl::OkStatus();
}

absl::Status GpuMoves::Connect(const LoadedPlan& plan, Team& team) {
  std::vector<NcclPlace> here;
  for (size_t place = 0; place < ends_.size(); ++place) {
    here.push_back({static_cast<int>(here_.begin) + static_cast<int>(place), ends_[place].gpu});
  }
  const auto share = [&team](absl::Span<char> id) -> absl::Status {
    MGC_ASSIGN_OR_RETURN(const std::string given,
                         team.TakeFromLead(absl::string_view(id.data(), id.size())));
    if (given.size() != id.size()) return absl::InternalError("an id of NCCL's of another size");
    std::memcpy(id.data(), given.data(), id.size());
    return absl::OkStatus();
  };
  const int ranks = static_cast<int>(plan.plan.mesh.world_size());
  MGC_ASSIGN_OR_RETURN(nccl_, NcclWorld::Create(ranks, std::move(here), plan.groups, share));
  return absl::OkStatus();
}

bool GpuMoves::BeginIssue() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!given_up_) ++issuing_;
  return !given_up_;
}

void GpuMoves::EndIssue(const absl::Status& issued) {
  std::unique_lock<std::mutex> lock(mutex_);
  --issuing_;
  issued_.notify_all();
  if (issued.ok() || !far_) return;
  issued_.wait_for(lock, kToHearWhy, [this] { return given_up_; });  // by who knows why
}

template <class Issue>
absl::Status GpuMoves::IssueByNccl(const Issue& issue) {
  if (!BeginIssue()) {
    const absl::Status met = nccl_->Check();
    return met.ok() ? absl::AbortedError("NCCL's communicators are being given up") : met;
  }
  absl::Status status = issue();
  EndIssue(status);
  return status;
}

absl::Status GpuMoves::RunExchanges(int lead, const ExchangeGroup& group,
                                    absl::Span<const TiledExchange> exchanges) {
  if (!by_nccl()) {
    const GpuEnd& end = ends_[static_cast<size_t>(lead)];
    MGC_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(end.gpu), "the GPU of a rank"));
    return CudaStatus(static_cast<cudaError_t>(cuda::IssueExchanges(end.stream, exchanges)),
                      "an exchange");
  }
  std::vector<NcclMember> members;
  for (size_t position = 0; position < group.members.size(); ++position) {
    const int rank = group.members[position];
    if (!here_.Contains(rank)) continue;
    const auto place = static_cast<size_t>(rank - here_.begin);
    const ncclComm_t comm = nccl_->group(static_cast<size_t>(group.set), place);
    members.push_back({EndOf(place, comm), static_cast<int64_t>(position), staging_[place].get()});
  }
  return IssueByNccl([&] { return IssueNcclExchanges(exchanges, members); });
}

absl::Status GpuMoves::RunTransfer(int place, const FarTransfer& transfer) {
  const auto at = static_cast<size_t>(place);
  const NcclTransfer end = {EndOf(at, nccl_->all(at)), transfer.sends, transfer.peer,
                            transfer.memory, transfer.bytes};
  return IssueByNccl([&] { return IssueNcclTransfers({&end, 1}); });
}

void GpuMoves::Abort() {
  if (!by_nccl()) return;
  std::unique_lock<std::mutex> lock(mutex_);
  given_up_ = true;
  issued_.notify_all();
  issued_.wait_for(lock, kToComeBack, [this] { return issuing_ == 0; });
  lock.unlock();
  nccl_->Abort();
}

}  // namespace mgc
