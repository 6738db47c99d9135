#include "runtime/cuda/device_cuda.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime/cuda/exchange/exchanges.h"

namespace mgc {
namespace {

// Data that may wait to be copied between steps before the host waits for it.
constexpr int64_t kMostStaged = int64_t{64} << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> CudaDevice::Create(const CudaOptions& options,
                                                           const DeviceRoom& room,
                                                           Parallel& parallel) {
  int gpus = 0;
  const cudaError_t found = cudaGetDeviceCount(&gpus);
  if (found != cudaSuccess || options.gpu >= gpus) {
    return absl::FailedPreconditionError(absl::StrCat(
        "there is no GPU ", options.gpu, " here: ",
        found != cudaSuccess ? cudaGetErrorString(found) : absl::StrCat("there are ", gpus)));
  }
  MGC_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(options.gpu), "the GPU"));
  MGC_ASSIGN_OR_RETURN(CudaArenas arenas, CudaArenas::Create(room.arenas, room.workspace));
  std::unique_ptr<CudaDevice> device(new CudaDevice(options, std::move(arenas), parallel));
  MGC_RETURN_IF_ERROR(device->MakeLanes(static_cast<int>(room.arenas.size())));
  return std::unique_ptr<Device>(std::move(device));
}

CudaDevice::CudaDevice(const CudaOptions& options, CudaArenas arenas, Parallel& parallel)
    : Device(arenas.bases()), options_(options), arenas_(std::move(arenas)), parallel_(parallel) {}

CudaDevice::~CudaDevice() { cudaDeviceSynchronize(); }

absl::Status CudaDevice::MakeLanes(int places) {
  for (int lane = 0; lane < 2 * places; ++lane) {
    Lane made;
    MGC_ASSIGN_OR_RETURN(made.stream, MakeStream(/*urgent=*/lane % 2 == 1));
    MGC_ASSIGN_OR_RETURN(made.end, MakeEvent());
    lanes_.push_back(std::move(made));
  }
  MGC_ASSIGN_OR_RETURN(reading_, MakeStream(/*urgent=*/true));
  MGC_ASSIGN_OR_RETURN(fork_, MakeEvent());
  // The memory was cleared on another stream.
  return CudaStatus(cudaDeviceSynchronize(), "the first zeros");
}

void CudaDevice::Keep(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  error_.Update(CudaStatus(error, what));
}

void CudaDevice::BeginStep(const StepBegin& start) {
  if (staging_.taken() > 0) Keep(cudaDeviceSynchronize(), "copies between steps");
  staging_.Reset();
  now_ = &captured_[start.lists];
  next_put_.assign(lanes_.size(), 0);
  awaits_each_ = options_.check_each || start.timed;
  // Nothing can be looked at in a graph.
  const bool issues = !options_.graphs || awaits_each_ || start.looked_at || !now_->met;
  mode_ = issues ? Mode::kIssue : now_->graph == nullptr ? Mode::kCapture : Mode::kReplay;
  now_->met = true;
  if (mode_ == Mode::kCapture) {
    now_->puts.resize(lanes_.size());
    BeginCapture();
  }
  const Queue first = ComputeQueue(0);
  char* const staged = StagingOf(first, sizeof(int64_t));
  if (staged == nullptr) return;
  std::memcpy(staged, &start.first_sample, sizeof(int64_t));
  if (mode_ == Mode::kReplay) return;
  Keep(cudaMemcpyAsync(arenas_.step_sample.get(), staged, sizeof(int64_t), cudaMemcpyHostToDevice,
                       StreamOf(first)),
       "the step's sample");
  // The others' kernels read it too.
  Keep(cudaEventRecord(fork_.get(), StreamOf(first)), "the step's begin");
  for (size_t lane = 1; lane < lanes_.size(); ++lane) {
    Keep(cudaStreamWaitEvent(lanes_[lane].stream.get(), fork_.get(), 0), "the step's begin");
  }
}

// Relaxed: other threads issue too, and none of what they call waits.
void CudaDevice::BeginCapture() {
  Keep(cudaStreamBeginCapture(lanes_[0].stream.get(), cudaStreamCaptureModeRelaxed), "a capture");
}

void CudaDevice::EndCapture() {
  AwaitAll();
  cudaGraph_t graph = nullptr;
  Keep(cudaStreamEndCapture(lanes_[0].stream.get(), &graph), "a capture's end");
  if (graph == nullptr) return;
  cudaGraphExec_t made = nullptr;
  Keep(cudaGraphInstantiate(&made, graph, 0), "a graph");
  now_->graph.reset(made);
  cudaGraphDestroy(graph);
}

// Lets the first stream wait for all others.
void CudaDevice::AwaitAll() {
  for (size_t lane = 1; lane < lanes_.size(); ++lane) {
    Keep(cudaEventRecord(lanes_[lane].end.get(), lanes_[lane].stream.get()), "a step's end");
    Keep(cudaStreamWaitEvent(lanes_[0].stream.get(), lanes_[lane].end.get(), 0), "a step's end");
  }
}

// Where the host writes what a queue is to copy; null when there is no room, which is kept.
char* CudaDevice::StagingOf(Queue queue, int64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const size_t lane = LaneOf(queue);
  if (mode_ == Mode::kReplay) return now_->puts[lane][next_put_[lane]++];
  if (mode_ == Mode::kBetween && staging_.taken() > kMostStaged) {
    error_.Update(CudaStatus(cudaDeviceSynchronize(), "copies"));
    staging_.Reset();
  }
  char* const at = (mode_ == Mode::kCapture ? now_->data : staging_).Take(bytes);
  if (at == nullptr) {
    error_.Update(absl::ResourceExhaustedError(
        absl::StrCat("the system has no ", bytes, " bytes that a GPU can copy from")));
    return nullptr;
  }
  if (mode_ == Mode::kCapture) now_->puts[lane].push_back(at);
  return at;
}

void CudaDevice::Put(Queue queue, int64_t address, int64_t bytes,
                     absl::FunctionRef<void(char* to)> fill) {
  char* const staged = StagingOf(queue, bytes);
  if (staged == nullptr) return;
  std::memset(staged, 0, static_cast<size_t>(bytes));
  fill(staged);
  if (mode_ == Mode::kReplay) return;
  Keep(cudaMemcpyAsync(At(queue.place, address), staged, static_cast<size_t>(bytes),
                       cudaMemcpyHostToDevice, StreamOf(queue)),
       "a copy to the GPU");
}

void CudaDevice::Zero(Queue queue, int64_t address, int64_t bytes) {
  if (mode_ == Mode::kReplay) return;
  Keep(cudaMemsetAsync(At(queue.place, address), 0, static_cast<size_t>(bytes), StreamOf(queue)),
       "zeros");
}

void CudaDevice::Copy(Queue queue, const void* from, void* to, int64_t bytes) {
  if (mode_ == Mode::kReplay) return;
  Keep(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice,
                       StreamOf(queue)),
       "a copy");
}

absl::Status CudaDevice::RunKernel(Queue queue, const Kernel& kernel, const KernelRun& run,
                                   int /*worker*/) {
  if (mode_ == Mode::kReplay) return absl::OkStatus();
  KernelRun issued = run;
  issued.workspace = arenas_.workspaces[static_cast<size_t>(queue.place)].get();
  issued.queue = StreamOf(queue);
  issued.step_sample = reinterpret_cast<const int64_t*>(arenas_.step_sample.get());
  MGC_RETURN_IF_ERROR(kernel.Run(issued, parallel_));
  if (!awaits_each_) return absl::OkStatus();
  return CudaStatus(cudaStreamSynchronize(StreamOf(queue)), "the kernel");
}

absl::Status CudaDevice::RunExchanges(Queue queue, absl::Span<const TiledExchange> exchanges) {
  if (mode_ == Mode::kReplay) return absl::OkStatus();
  const int error = cuda::IssueExchanges(StreamOf(queue), exchanges);
  for (const TiledExchange& tiled : exchanges) {
    if (error != 0) MGC_RETURN_IF_ERROR(cuda::CheckIssuable(*tiled.exchange));
  }
  if (error != 0 || !awaits_each_) {
    return CudaStatus(static_cast<cudaError_t>(error), "an exchange");
  }
  return CudaStatus(cudaStreamSynchronize(StreamOf(queue)), "the exchange");
}

void CudaDevice::Tell(Queue queue, std::function<void()> told) {
  Keep(cudaStreamSynchronize(StreamOf(queue)), "a queue");
  told();
}

void CudaDevice::Record(const Mark& mark) {
  if (mode_ == Mode::kReplay) return;
  Lane& lane = lanes_[LaneOf(QueueOf(mark))];
  cudaEvent_t event = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::deque<CudaEvent>& events = lane.marks[static_cast<size_t>(mark.kind)];
    while (static_cast<int64_t>(events.size()) < mark.count) {
      absl::StatusOr<CudaEvent> made = MakeEvent();
      if (!made.ok()) return error_.Update(made.status());
      events.push_back(*std::move(made));
    }
    event = events[static_cast<size_t>(mark.count - 1)].get();
  }
  Keep(cudaEventRecord(event, lane.stream.get()), "a mark");
}

void CudaDevice::Await(Queue queue, const Mark& mark, Wait /*why*/) {
  if (mode_ == Mode::kReplay || mark.count == 0 || LaneOf(queue) == LaneOf(QueueOf(mark))) return;
  cudaEvent_t event = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::deque<CudaEvent>& events =
        lanes_[LaneOf(QueueOf(mark))].marks[static_cast<size_t>(mark.kind)];
    if (static_cast<int64_t>(events.size()) < mark.count) return;  // it could not be made
    event = events[static_cast<size_t>(mark.count - 1)].get();
  }
  Keep(cudaStreamWaitEvent(StreamOf(queue), event, 0), "a wait for a mark");
}

absl::Status CudaDevice::Check() {
  const std::lock_guard<std::mutex> lock(mutex_);
  error_.Update(CudaStatus(cudaPeekAtLastError(), "a call before"));
  return error_;
}

absl::Status CudaDevice::Drain(bool complete) {
  if (mode_ == Mode::kCapture) EndCapture();
  if (mode_ != Mode::kIssue && complete && now_->graph != nullptr) {
    Keep(cudaGraphLaunch(now_->graph.get(), lanes_[0].stream.get()), "a step");
  }
  for (Lane& lane : lanes_) Keep(cudaStreamSynchronize(lane.stream.get()), "a step");
  mode_ = Mode::kBetween;
  const std::lock_guard<std::mutex> lock(mutex_);
  staging_.Reset();
  return error_;
}

void CudaDevice::Look(Queue queue, int64_t address, int64_t bytes,
                      absl::FunctionRef<void(const char* from)> look) {
  std::vector<char> copy(static_cast<size_t>(bytes));
  Keep(cudaMemcpyAsync(copy.data(), At(queue.place, address), copy.size(), cudaMemcpyDeviceToHost,
                       StreamOf(queue)),
       "a look");
  Keep(cudaStreamSynchronize(StreamOf(queue)), "a look");
  look(copy.data());
}

// Of a step only what it leaves as it was may be read, and that lies there already.
void CudaDevice::Get(int place, int64_t address, int64_t bytes, void* to) {
  if (mode_ == Mode::kBetween) {
    for (Queue queue : {ComputeQueue(place), CommQueue(place)}) {
      Keep(cudaStreamSynchronize(StreamOf(queue)), "a read");
    }
  }
  Keep(cudaMemcpyAsync(to, At(place, address), static_cast<size_t>(bytes), cudaMemcpyDeviceToHost,
                       reading_.get()),
       "a read");
  Keep(cudaStreamSynchronize(reading_.get()), "a read");
}

}  // namespace mgc
