#include "runtime/cuda/cuda_memory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr int64_t kChunkBytes = int64_t{4} << 20;
constexpr int64_t kAlignment = 256;

}  // namespace

absl::Status CudaStatus(cudaError_t error, absl::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  const std::string message = absl::StrCat("CUDA, ", what, ": ", cudaGetErrorString(error));
  return error == cudaErrorMemoryAllocation ? absl::ResourceExhaustedError(message)
                                            : absl::InternalError(message);
}

absl::StatusOr<DeviceMemory> MakeDeviceMemory(int64_t bytes) {
  void* at = nullptr;
  const auto room = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  MGC_RETURN_IF_ERROR(CudaStatus(cudaMalloc(&at, room), absl::StrCat(room, " bytes")));
  DeviceMemory memory(static_cast<char*>(at));
  MGC_RETURN_IF_ERROR(CudaStatus(cudaMemset(at, 0, room), "zeros"));
  return memory;
}

absl::StatusOr<CudaStream> MakeStream(bool urgent) {
  int least = 0, greatest = 0;
  MGC_RETURN_IF_ERROR(
      CudaStatus(cudaDeviceGetStreamPriorityRange(&least, &greatest), "priorities"));
  cudaStream_t stream = nullptr;
  MGC_RETURN_IF_ERROR(CudaStatus(
      cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, urgent ? greatest : least),
      "a stream"));
  return CudaStream(stream);
}

absl::StatusOr<CudaEvent> MakeEvent() {
  cudaEvent_t event = nullptr;
  MGC_RETURN_IF_ERROR(
      CudaStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event"));
  return CudaEvent(event);
}

char* PinnedPool::Take(int64_t bytes) {
  const int64_t room = (std::max<int64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  while (chunk_ < chunks_.size() && used_ + room > chunks_[chunk_].bytes) {
    ++chunk_;
    used_ = 0;
  }
  if (chunk_ == chunks_.size()) {
    void* at = nullptr;
    const int64_t size = std::max(room, kChunkBytes);
    if (cudaMallocHost(&at, static_cast<size_t>(size)) != cudaSuccess) return nullptr;
    chunks_.push_back({PinnedMemory(static_cast<char*>(at)), size});
  }
  char* const at = chunks_[chunk_].memory.get() + used_;
  used_ += room;
  taken_ += room;
  return at;
}

void PinnedPool::Reset() {
  chunk_ = 0;
  used_ = taken_ = 0;
}

absl::StatusOr<CudaArenas> CudaArenas::Create(const std::vector<int64_t>& arena_bytes,
                                              int64_t workspace_bytes) {
  int64_t needed = 0;
  for (int64_t bytes : arena_bytes) needed += bytes + workspace_bytes;
  size_t free = 0, total = 0;
  MGC_RETURN_IF_ERROR(CudaStatus(cudaMemGetInfo(&free, &total), "the GPU's memory"));
  if (static_cast<uint64_t>(needed) > free) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the ", arena_bytes.size(), " ranks here need ", needed, " bytes, with scratch of ",
        workspace_bytes, " each; the GPU has ", free, " free of ", total));
  }
  CudaArenas made;
  for (int64_t bytes : arena_bytes) {
    MGC_ASSIGN_OR_RETURN(DeviceMemory arena, MakeDeviceMemory(bytes));
    made.arenas.push_back(std::move(arena));
    MGC_ASSIGN_OR_RETURN(DeviceMemory workspace, MakeDeviceMemory(workspace_bytes));
    made.workspaces.push_back(std::move(workspace));
  }
  MGC_ASSIGN_OR_RETURN(made.step_sample, MakeDeviceMemory(sizeof(int64_t)));
  return made;
}

std::vector<char*> CudaArenas::bases() const {
  std::vector<char*> at;
  at.reserve(arenas.size());
  for (const DeviceMemory& arena : arenas) at.push_back(arena.get());
  return at;
}

}  // namespace mgc
