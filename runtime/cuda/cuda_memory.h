// What of CUDA has to be given back: memory, streams, events and graphs that free themselves.

#ifndef MGC_RUNTIME_CUDA_CUDA_MEMORY_H_
#define MGC_RUNTIME_CUDA_CUDA_MEMORY_H_

#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/cuda/api.h"

namespace mgc {

// OK, or what CUDA says went wrong with `what`.
absl::Status CudaStatus(cudaError_t error, absl::string_view what);

struct FreeOnDevice {
  void operator()(char* at) const { cudaFree(at); }
};
struct FreePinned {
  void operator()(char* at) const { cudaFreeHost(at); }
};
struct DestroyStream {
  void operator()(std::remove_pointer_t<cudaStream_t>* stream) const { cudaStreamDestroy(stream); }
};
struct DestroyEvent {
  void operator()(std::remove_pointer_t<cudaEvent_t>* event) const { cudaEventDestroy(event); }
};
struct DestroyGraph {
  void operator()(std::remove_pointer_t<cudaGraphExec_t>* graph) const {
    cudaGraphExecDestroy(graph);
  }
};
using DeviceMemory = std::unique_ptr<char, FreeOnDevice>;
using PinnedMemory = std::unique_ptr<char, FreePinned>;
using CudaStream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, DestroyStream>;
using CudaEvent = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent>;
using CudaGraph = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, DestroyGraph>;

absl::StatusOr<DeviceMemory> MakeDeviceMemory(int64_t bytes);
absl::StatusOr<CudaStream> MakeStream(bool urgent);
absl::StatusOr<CudaEvent> MakeEvent();  // without a time

// Host memory that the GPU copies from while the host goes on, handed out in order and taken back
// all at once.
class PinnedPool {
 public:
  // Null when the system has none left.
  char* Take(int64_t bytes);
  // Everything that was taken is free again.
  void Reset();
  int64_t taken() const { return taken_; }

 private:
  struct Chunk {
    PinnedMemory memory;
    int64_t bytes = 0;
  };

  std::vector<Chunk> chunks_;
  size_t chunk_ = 0;   // that is handed out of
  int64_t used_ = 0;   // of it
  int64_t taken_ = 0;  // of all, since the last Reset
};

// What a GPU keeps for the ranks on it.
struct CudaArenas {
  std::vector<DeviceMemory> arenas;      // by place; zero at first
  std::vector<DeviceMemory> workspaces;  // by place: a compute stream runs one kernel at a time
  DeviceMemory step_sample;              // of the step that runs, an i64

  static absl::StatusOr<CudaArenas> Create(const std::vector<int64_t>& arena_bytes,
                                           int64_t workspace_bytes);
  std::vector<char*> bases() const;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_CUDA_CUDA_MEMORY_H_
