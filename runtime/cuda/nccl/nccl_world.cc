#include "runtime/cuda/nccl/nccl_world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "kernels/cuda/api.h"

namespace mgc {

absl::Status NcclStatus(ncclResult_t result, absl::string_view what, ncclComm_t comm) {
  if (result == ncclSuccess) return absl::OkStatus();
  const char* const more = ncclGetLastError(comm);
  const std::string text =
      absl::StrCat("NCCL: ", what, ": ", ncclGetErrorString(result),
                   more != nullptr && *more != '\0' ? absl::StrCat(" (", more, ")") : "");
  return result == ncclRemoteError ? absl::UnavailableError(text) : absl::InternalError(text);
}

template <class Make>
absl::Status NcclWorld::ForEachPlace(const char* what, const Make& make) const {
  ncclResult_t first = ncclGroupStart();
  for (size_t place = 0; place < here_.size(); ++place) {
    if (cudaSetDevice(here_[place].gpu) != cudaSuccess) first = ncclUnhandledCudaError;
    const ncclResult_t result = first == ncclSuccess ? make(place) : first;
    if (first == ncclSuccess) first = result;
  }
  const ncclResult_t end = ncclGroupEnd();
  return NcclStatus(first != ncclSuccess ? first : end, what);
}

// Calls `function` for the communicators that were made together, those split from others first.
template <class Function>
void NcclWorld::ForEachMade(const Function& function) const {
  for (const Comms& comms : groups_) {
    if (comms != all_) function(comms);
  }
  function(all_);
}

absl::StatusOr<std::unique_ptr<NcclWorld>> NcclWorld::Create(int ranks, std::vector<NcclPlace> here,
                                                             absl::Span<const NcclGroups> sets,
                                                             const ShareNcclId& share) {
  std::unique_ptr<NcclWorld> world(new NcclWorld(std::move(here)));
  absl::Status status = world->Init(ranks, share);
  for (const NcclGroups& set : sets) {
    if (status.ok()) status = world->Split(set, ranks);
  }
  if (status.ok()) return world;
  world->Abort();  // others may wait for this one
  return status;
}

absl::Status NcclWorld::Init(int ranks, const ShareNcclId& share) {
  all_.assign(here_.size(), nullptr);
  ncclUniqueId id = {};
  for (const NcclPlace& place : here_) {
    if (place.rank == 0) MGC_RETURN_IF_ERROR(NcclStatus(ncclGetUniqueId(&id), "a unique id"));
  }
  MGC_RETURN_IF_ERROR(share(absl::MakeSpan(id.internal)));
  return ForEachPlace("the communicator of all ranks", [&](size_t place) {
    return ncclCommInitRank(&all_[place], ranks, id, here_[place].rank);
  });
}

absl::Status NcclWorld::Split(const NcclGroups& groups, int ranks) {
  Comms& comms = groups_.emplace_back(here_.size(), nullptr);
  const size_t members = groups[0].size();  // as all groups of the set have
  if (members == 1) return absl::OkStatus();
  if (members == static_cast<size_t>(ranks)) {
    comms = all_;
    return absl::OkStatus();
  }
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.splitShare = 1;
  return ForEachPlace("the communicators of groups", [&](size_t place) {
    const std::vector<int>& group = groups[place];
    const int rank = here_[place].rank;
    const bool is_member = std::binary_search(group.begin(), group.end(), rank);
    const int color = is_member ? group[0] : NCCL_SPLIT_NOCOLOR;
    return ncclCommSplit(all_[place], color, rank, &comms[place], &config);
  });
}

absl::Status NcclWorld::Check() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (aborted_ || !error_.ok()) return error_;
  ForEachMade([this](const Comms& comms) {
    for (ncclComm_t comm : comms) {
      if (comm == nullptr) continue;
      ncclResult_t met = ncclSuccess;
      const ncclResult_t asked = ncclCommGetAsyncError(comm, &met);
      const ncclResult_t result = asked != ncclSuccess ? asked : met;
      if (result != ncclInProgress) error_.Update(NcclStatus(result, "a collective", comm));
    }
  });
  return error_;
}

void NcclWorld::Abort() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (std::exchange(aborted_, true)) return;
  error_.Update(absl::AbortedError("NCCL's communicators have been given up"));
  ForEachMade([](const Comms& comms) {
    for (ncclComm_t comm : comms) {
      if (comm != nullptr) ncclCommAbort(comm);
    }
  });
}

// In groups of calls: of several communicators in one process none may wait for another.
NcclWorld::~NcclWorld() {
  if (aborted_) return;
  ForEachMade([](const Comms& comms) {
    ncclGroupStart();
    for (ncclComm_t comm : comms) {
      if (comm != nullptr) ncclCommDestroy(comm);
    }
    ncclGroupEnd();
  });
}

}  // namespace mgc
