// GPUs as the device of some ranks: arenas in their memory, two streams a rank, marks as events.
//
// A rank is on one GPU (runtime/cuda/gpu_places.h), and so are its arena, streams and events. Calls
// make the rank's GPU the calling thread's current one; nobody else need think of that.
//
// What the step machine issues goes to the streams at once and is done when these come to it; the
// host waits where somebody reads bytes (Get, Look) and at a step's end. What moves between ranks,
// and by what, is runtime/cuda/gpu_moves.h's; transfers between ranks of one process are copies,
// whatever GPUs they are on.
//
// Steps are captured: the first step of each list of a plan is issued as it comes, the second is
// recorded as one CUDA graph of all streams, and from then on the machine's calls only fill the
// data of the step, after which the graph is launched. That is the same work in the same order on
// the same addresses; what changes from step to step (data, scalars, the number of the first
// sample) lies in memory that the graph copies from. In a run of several processes no step is
// captured (docs/decisions/0056-several-gpus.md).
//
// An error of the GPU comes late and belongs to no call: Drain has it, and then every call. With
// `check_each` the host waits behind each kernel instead, so that the error has a place; in a step
// that is recorded too, so that a record's time is its kernel's, some 10 us of the host's apart.
//
// What waits for another process may wait for ever. So where NCCL is in use, waits of the host end
// when NCCL has met an error, or when Abort is called because the run has ended elsewhere.

#ifndef MGC_RUNTIME_CUDA_DEVICE_CUDA_H_
#define MGC_RUNTIME_CUDA_DEVICE_CUDA_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/types/optional.h"
#include "kernels/cuda/api.h"
#include "kernels/cuda/joined_kernel.h"
#include "runtime/cuda/cuda_memory.h"
#include "runtime/cuda/gpu_moves.h"
#include "runtime/run/device.h"

namespace mgc {

struct CudaOptions {
  int gpus = 0;             // how many of those here are used; 0: all, or as many as ranks
  bool graphs = true;       // whether steps are captured
  bool check_each = false;  // whether the host waits behind each kernel; no step is captured then
};

class CudaDevice final : public Device {
 public:
  // ResourceExhausted when a GPU has too little memory that is free; FailedPrecondition when there
  // are too few GPUs, with the nearest legal numbers, or none, with what the driver says.
  static absl::StatusOr<std::unique_ptr<Device>> Create(const CudaOptions& options,
                                                        const DeviceRoom& room, Parallel& parallel);
  ~CudaDevice() override;

  absl::Status Open(const LoadedPlan& plan, Team& team) override;
  bool reaches_far() const override { return far_; }
  void Abort() override;
  void BeginStep(const StepBegin& start) override;
  void Put(Queue queue, int64_t address, int64_t bytes,
           absl::FunctionRef<void(char* to)> fill) override;
  void Zero(Queue queue, int64_t address, int64_t bytes) override;
  void Copy(Queue queue, const void* from, void* to, int64_t bytes) override;
  absl::Status RunKernel(Queue queue, const Kernel& kernel, const KernelRun& run,
                         int worker) override;
  absl::Status RunExchanges(Queue queue, const ExchangeGroup& group,
                            absl::Span<const TiledExchange> exchanges) override;
  absl::Status RunTransfer(Queue queue, const FarTransfer& transfer) override;
  void Tell(Queue queue, std::function<void()> told) override;
  void Record(const Mark& mark) override;
  void Await(Queue queue, const Mark& mark, Wait why) override;
  absl::Status Check() override;
  absl::Status Drain(bool complete) override;
  int64_t items_done(int place) const override;
  void Look(Queue queue, int64_t address, int64_t bytes,
            absl::FunctionRef<void(const char* from)> look) override;
  void Get(int place, int64_t address, int64_t bytes, void* to) override;

 private:
  // A queue: its stream, and an event for each count of each kind of mark that it records.
  struct Lane {
    CudaStream stream;
    std::array<std::deque<CudaEvent>, kNumMarkKinds> marks;
    std::array<int64_t, kNumMarkKinds> recorded{};  // of them, in this step
    CudaEvent end;
    // Steps of an optimizer that are issued with those that may follow, or before all else.
    cuda::IssueSteps issue = nullptr;
    std::vector<cuda::StepPart> steps;
  };

  // What there is once for each GPU.
  struct Gpu {
    int number = 0;
    int first = 0;  // place of the first rank on it, which those on it follow
    CudaArenas memory;
    CudaStream reading;
    CudaEvent fork;
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

  CudaDevice(const CudaOptions& options, const DeviceRoom& room, std::vector<Gpu> gpus,
             Parallel& parallel);
  static absl::StatusOr<std::vector<Gpu>> MakeGpus(const std::vector<int>& by_place,
                                                   const DeviceRoom& room);
  static std::vector<char*> BasesOf(const std::vector<Gpu>& gpus);
  absl::Status MakeLanes(int places);

  static size_t LaneOf(Queue queue) {
    return 2 * static_cast<size_t>(queue.place) + (queue.kind == QueueKind::kComm ? 1 : 0);
  }
  cudaStream_t StreamOf(Queue queue) { return lanes_[LaneOf(queue)].stream.get(); }
  // To which all has been issued that the queue has been given.
  cudaStream_t UpToDate(Queue queue);
  void IssueSteps(Lane* lane);
  void Join(Queue queue, const cuda::JoinedKernel& kernel, const KernelRun& run);
  const Gpu& GpuOf(int place) const { return gpus_[gpu_of_[static_cast<size_t>(place)]]; }
  void Use(int place) { Keep(cudaSetDevice(GpuOf(place).number), "a rank's GPU"); }
  char* StagingOf(Queue queue, int64_t bytes);
  void Keep(cudaError_t error, const char* what);
  void ForkStep(Gpu& gpu, int64_t first_sample);
  void BeginCapture();
  void EndCapture();
  void AwaitAll();
  void SynchronizeAll(const char* what);
  cudaError_t AwaitStream(cudaStream_t stream);
  bool MayWaitOn();
  void NoteItemsDone();

  const CudaOptions options_;
  const bool far_;  // of several processes
  std::vector<Gpu> gpus_;
  std::vector<size_t> gpu_of_;  // by place, its place in `gpus_`
  Parallel& parallel_;
  std::vector<Lane> lanes_;
  std::unique_ptr<GpuMoves> moves_;  // outlives graphs that it is captured in
  std::atomic<Mode> mode_{Mode::kBetween};
  std::map<const void*, Captured> captured_;
  Captured* now_ = nullptr;       // of the step that runs
  bool awaits_each_ = false;      // in that step the host waits behind each kernel
  std::vector<size_t> next_put_;  // by lane

  std::mutex mutex_;  // of what follows
  PinnedPool staging_;
  absl::Status error_;
  absl::optional<std::chrono::steady_clock::time_point> unwell_;  // since NCCL has met an error
  std::vector<int64_t> items_done_;                               // by then, by place
};

}  // namespace mgc

#endif  // MGC_RUNTIME_CUDA_DEVICE_CUDA_H_
