#include "runtime/cuda/gpu_places.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "kernels/cuda/api.h"
#include "runtime/comm/process_map.h"
#include "runtime/cuda/cuda_memory.h"

namespace mgc {
namespace {

absl::Status CheckAsked(const GpuPlaces& places) {
  if (places.visible < 1) return absl::FailedPreconditionError("there is no GPU here");
  if (places.asked > places.visible) {
    return absl::FailedPreconditionError(
        absl::StrCat(places.asked, " GPUs are asked for, and there are ", places.visible,
                     " here; nearest legal: ", places.visible));
  }
  if (places.processes == 1 && places.asked > places.ranks) {
    return absl::FailedPreconditionError(
        absl::StrCat(places.asked, " GPUs are asked for, and a rank has one, of which there are ",
                     places.ranks, "; nearest legal: ", places.ranks));
  }
  return absl::OkStatus();
}

// The first GPU of a process of several, whose ranks have one each.
absl::StatusOr<int64_t> FirstOwn(const GpuPlaces& places) {
  if (places.asked == 0 && places.visible == places.ranks) return 0;
  const int64_t count = places.asked > 0 ? places.asked : places.visible;
  if (places.ranks_before + places.ranks <= count) return places.ranks_before;
  return absl::FailedPreconditionError(absl::StrCat(
      "in several processes every rank has a GPU of its own: ", places.ranks,
      " ranks here come behind ", places.ranks_before, " of other processes of this host, and ",
      count, " GPUs are for all of them; nearest legal: ", count,
      " ranks on this host, or one process, whose ranks share GPUs"));
}

absl::StatusOr<bool> Reaches(int gpu, int other) {
  int can = 0;
  MGC_RETURN_IF_ERROR(CudaStatus(cudaDeviceCanAccessPeer(&can, gpu, other), "access to a GPU"));
  return can != 0;
}

absl::Status LetReach(int gpu, int other) {
  MGC_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(gpu), "a GPU"));
  const cudaError_t error = cudaDeviceEnablePeerAccess(other, 0);
  if (error != cudaErrorPeerAccessAlreadyEnabled) return CudaStatus(error, "access to a GPU");
  cudaGetLastError();  // takes it back
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<int>> PlaceOnGpus(const GpuPlaces& places) {
  MGC_RETURN_IF_ERROR(CheckAsked(places));
  std::vector<int> by_place;
  if (places.processes > 1) {
    MGC_ASSIGN_OR_RETURN(const int64_t first, FirstOwn(places));
    for (int place = 0; place < places.ranks; ++place) {
      by_place.push_back(static_cast<int>(first) + place);
    }
    return by_place;
  }
  const int gpus = std::min(places.asked > 0 ? places.asked : places.visible, places.ranks);
  MGC_ASSIGN_OR_RETURN(const ProcessMap blocks, ProcessMap::Create(places.ranks, gpus));
  for (int place = 0; place < places.ranks; ++place) by_place.push_back(blocks.ProcessOf(place));
  return by_place;
}

std::vector<int> GpusIn(absl::Span<const int> by_place) {
  std::vector<int> gpus(by_place.begin(), by_place.end());
  std::sort(gpus.begin(), gpus.end());
  gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());
  return gpus;
}

absl::Status LetReachEachOther(absl::Span<const int> gpus, bool must, int ranks) {
  for (int gpu : gpus) {
    for (int other : gpus) {
      if (gpu == other) continue;
      MGC_ASSIGN_OR_RETURN(const bool reaches, Reaches(gpu, other));
      if (reaches) MGC_RETURN_IF_ERROR(LetReach(gpu, other));
      if (reaches || !must) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          ranks, " ranks on ", gpus.size(), " GPUs share them, for which GPUs must reach each ",
          "other's memory, and GPU ", gpu, " cannot reach that of GPU ", other,
          "; nearest legal: 1 GPU, or ", ranks));
    }
  }
  return absl::OkStatus();
}

}  // namespace mgc
