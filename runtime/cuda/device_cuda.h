// A GPU as the device of some ranks: arenas in its memory, two streams a rank, marks as events.
//
// What the step machine issues goes to the streams at once and is done when these come to it; the
// host waits where somebody reads bytes (Get, Look) and at a step's end. Several ranks may share a
// GPU: their exchanges are kernels of the GPU's own (runtime/cuda/exchange), launched when all
// members stand there, so that no kernel ever waits for another rank's.
//
// Steps are captured: the first step of each list of a plan is issued as it comes, the second is
// recorded as one CUDA graph of all streams, and from then on the machine's calls only fill the
// data of the step, after which the graph is launched. That is the same work in the same order on
// the same addresses; what changes from step to step (data, scalars, the number of the first
// sample) lies in memory that the graph copies from.
//
// An error of the GPU comes late and belongs to no call: Drain has it, and then every call. With
// `check_each` the host waits behind each kernel instead, so that the error has a place; in a step
// that is recorded too, so that a record's time is its kernel's, some 10 us of the host's apart.

#ifndef MGC_RUNTIME_CUDA_DEVICE_CUDA_H_
#define MGC_RUNTIME_CUDA_DEVICE_CUDA_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/cuda/api.h"
#include "runtime/cuda/cuda_memory.h"
#include "runtime/run/device.h"

namespace mgc {

struct CudaOptions {
  int gpu = 0;              // of this machine
  bool graphs = true;       // whether steps are captured
  bool check_each = false;  // whether the host waits behind each kernel; no step is captured then
};

class CudaDevice final : public Device {
 public:
  // ResourceExhausted when the GPU has too little memory that is free; FailedPrecondition when
  // there is no such GPU, with what the driver says.
  static absl::StatusOr<std::unique_ptr<Device>> Create(const CudaOptions& options,
                                                        const DeviceRoom& room, Parallel& parallel);
  ~CudaDevice() override;

  void BeginStep(const StepBegin& start) override;
  void Put(Queue queue, int64_t address, int64_t bytes,
           absl::FunctionRef<void(char* to)> fill) override;
  void Zero(Queue queue, int64_t address, int64_t bytes) override;
  void Copy(Queue queue, const void* from, void* to, int64_t bytes) override;
  absl::Status RunKernel(Queue queue, const Kernel& kernel, const KernelRun& run,
                         int worker) override;
  absl::Status RunExchanges(Queue queue, absl::Span<const TiledExchange> exchanges) override;
  void Tell(Queue queue, std::function<void()> told) override;
  void Record(const Mark& mark) override;
  void Await(Queue queue, const Mark& mark, Wait why) override;
  absl::Status Check() override;
  absl::Status Drain(bool complete) override;
  void Look(Queue queue, int64_t address, int64_t bytes,
            absl::FunctionRef<void(const char* from)> look) override;
  void Get(int place, int64_t address, int64_t bytes, void* to) override;

 private:
  // A queue: its stream, and an event for each count of each kind of mark that it records.
  struct Lane {
    CudaStream stream;
    std::array<std::deque<CudaEvent>, kNumMarkKinds> marks;
    CudaEvent end;
  };

  // What the lists of a plan have become: the graph, and the data that it copies from, in the order
  // in which each queue is given it.
  struct Captured {
    CudaGraph graph;
    PinnedPool data;
    std::vector<std::vector<char*>> puts;  // by lane
    bool met = false;                      // issued once as it came
  };

  // Between two steps; or what a step's calls do: go to the streams, into a graph, or nothing that
  // the graph does not know.
  enum class Mode { kBetween, kIssue, kCapture, kReplay };

  CudaDevice(const CudaOptions& options, CudaArenas arenas, Parallel& parallel);
  absl::Status MakeLanes(int places);

  static size_t LaneOf(Queue queue) {
    return 2 * static_cast<size_t>(queue.place) + (queue.kind == QueueKind::kComm ? 1 : 0);
  }
  cudaStream_t StreamOf(Queue queue) { return lanes_[LaneOf(queue)].stream.get(); }
  char* StagingOf(Queue queue, int64_t bytes);
  void Keep(cudaError_t error, const char* what);
  void BeginCapture();
  void EndCapture();
  void AwaitAll();

  const CudaOptions options_;
  const CudaArenas arenas_;
  Parallel& parallel_;
  std::vector<Lane> lanes_;
  CudaStream reading_;
  CudaEvent fork_;
  std::atomic<Mode> mode_{Mode::kBetween};
  std::map<const void*, Captured> captured_;
  Captured* now_ = nullptr;       // of the step that runs
  bool awaits_each_ = false;      // in that step the host waits behind each kernel
  std::vector<size_t> next_put_;  // by lane

  std::mutex mutex_;  // of what follows
  PinnedPool staging_;
  absl::Status error_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_CUDA_DEVICE_CUDA_H_
