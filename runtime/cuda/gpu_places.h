// Which GPU each rank of a process is on.

#ifndef MGC_RUNTIME_CUDA_GPU_PLACES_H_
#define MGC_RUNTIME_CUDA_GPU_PLACES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mgc {

struct GpuPlaces {
  int visible = 0;           // GPUs that this process sees
  int asked = 0;             // how many of them are to be used; 0: all
  int ranks = 0;             // here
  int processes = 1;         // of the run
  int64_t ranks_before = 0;  // of processes of this host that come before this one
};

// By place: a GPU's number among those that are seen. In one process ranks that follow each other
// share a GPU where there are fewer GPUs than ranks, as evenly as can be. In several processes
// every rank has its own: those of this host are counted through, but where a process sees just as
// many GPUs as it has ranks, its launcher has given it these. FailedPrecondition where that cannot
// be, with the nearest legal numbers.
absl::StatusOr<std::vector<int>> PlaceOnGpus(const GpuPlaces& places);

// As PlaceOnGpus has them, without repetitions.
std::vector<int> GpusIn(absl::Span<const int> by_place);

// Lets each of these GPUs reach the memory of the others, where it can. With `must`, which is where
// ranks share GPUs: FailedPrecondition where one cannot, with what `ranks` ranks can run on then.
absl::Status LetReachEachOther(absl::Span<const int> gpus, bool must, int ranks);

}  // namespace mgc

#endif  // MGC_RUNTIME_CUDA_GPU_PLACES_H_
