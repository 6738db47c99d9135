#include "runtime/cuda/device_cuda.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime/cuda/gpu_places.h"

namespace mgc {
namespace {

// Data that may wait to be copied between steps before the host waits for it.
constexpr int64_t kMostStaged = int64_t{64} << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> CudaDevice::Create(const CudaOptions& options,
                                                           const DeviceRoom& room,
                                                           Parallel& parallel) {
  int visible = 0;
  const cudaError_t found = cudaGetDeviceCount(&visible);
  if (found != cudaSuccess) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is no GPU here: ", cudaGetErrorString(found)));
  }
  const int ranks = static_cast<int>(room.arenas.size());
  MGC_ASSIGN_OR_RETURN(
      const std::vector<int> by_place,
      PlaceOnGpus({visible, options.gpus, ranks, room.processes, room.ranks_before}));
  const std::vector<int> used = GpusIn(by_place);
  MGC_RETURN_IF_ERROR(
      LetReachEachOther(used, /*must=*/static_cast<int>(used.size()) < ranks, ranks));
  MGC_ASSIGN_OR_RETURN(std::vector<Gpu> gpus, MakeGpus(by_place, room));
  std::unique_ptr<CudaDevice> device(new CudaDevice(options, room, std::move(gpus), parallel));
  MGC_RETURN_IF_ERROR(device->MakeLanes(ranks));
  return std::unique_ptr<Device>(std::move(device));
}

absl::StatusOr<std::vector<CudaDevice::Gpu>> CudaDevice::MakeGpus(const std::vector<int>& by_place,
                                                                  const DeviceRoom& room) {
  std::vector<Gpu> gpus;
  for (size_t first = 0; first < by_place.size();) {
    size_t last = first;
    while (last < by_place.size() && by_place[last] == by_place[first]) ++last;
    Gpu& gpu = gpus.emplace_back();
    gpu.number = by_place[first];
    gpu.first = static_cast<int>(first);
    MGC_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(gpu.number), "a GPU"));
    absl::StatusOr<CudaArenas> memory =
        CudaArenas::Create({room.arenas.begin() + static_cast<std::ptrdiff_t>(first),
                            room.arenas.begin() + static_cast<std::ptrdiff_t>(last)},
                           room.workspace);
    MGC_RETURN_IF_ERROR(Annotate(memory.status(), absl::StrCat("GPU ", gpu.number)));
    gpu.memory = *std::move(memory);
    MGC_ASSIGN_OR_RETURN(gpu.reading, MakeStream(/*urgent=*/true));
    MGC_ASSIGN_OR_RETURN(gpu.fork, MakeEvent());
    first = last;
  }
  return gpus;
}

std::vector<char*> CudaDevice::BasesOf(const std::vector<Gpu>& gpus) {
  std::vector<char*> bases;
  for (const Gpu& gpu : gpus) {
    for (char* base : gpu.memory.bases()) bases.push_back(base);
  }
  return bases;
}

CudaDevice::CudaDevice(const CudaOptions& options, const DeviceRoom& room, std::vector<Gpu> gpus,
                       Parallel& parallel)
    : Device(BasesOf(gpus)),
      options_(options),
      far_(room.processes > 1),
      gpus_(std::move(gpus)),
      parallel_(parallel) {
  for (size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
    gpu_of_.insert(gpu_of_.end(), gpus_[gpu].memory.arenas.size(), gpu);
  }
}

// What others no longer come to must not be waited for.
CudaDevice::~CudaDevice() {
  if (!error_.ok()) Abort();
  SynchronizeAll("the end");
}

absl::Status CudaDevice::Open(const LoadedPlan& plan, Team& team) {
  std::vector<GpuEnd> ends;
  for (size_t place = 0; place < gpu_of_.size(); ++place) {
    const int at = static_cast<int>(place);
    ends.push_back({GpuOf(at).number, StreamOf(CommQueue(at))});
  }
  MGC_ASSIGN_OR_RETURN(moves_, GpuMoves::Create(plan, team, std::move(ends)));
  return absl::OkStatus();
}

void CudaDevice::Abort() {
  if (moves_ != nullptr) moves_->Abort();
}

absl::Status CudaDevice::MakeLanes(int places) {
  for (int lane = 0; lane < 2 * places; ++lane) {
    Use(lane / 2);
    Lane made;
    MGC_ASSIGN_OR_RETURN(made.stream, MakeStream(/*urgent=*/lane % 2 == 1));
    MGC_ASSIGN_OR_RETURN(made.end, MakeEvent());
    lanes_.push_back(std::move(made));
  }
  SynchronizeAll("the first zeros");  // on another stream
  return error_;
}

void CudaDevice::SynchronizeAll(const char* what) {
  for (const Gpu& gpu : gpus_) {
    Keep(cudaSetDevice(gpu.number), what);
    Keep(cudaDeviceSynchronize(), what);
  }
}

void CudaDevice::Keep(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  error_.Update(CudaStatus(error, what));
}

void CudaDevice::BeginStep(const StepBegin& start) {
  if (staging_.taken() > 0) SynchronizeAll("copies between steps");
  Use(0);
  staging_.Reset();
  now_ = &captured_[start.lists];
  next_put_.assign(lanes_.size(), 0);
  awaits_each_ = options_.check_each || start.timed;
  // Nothing can be looked at in a graph.
  const bool issues = !options_.graphs || far_ || awaits_each_ || start.looked_at || !now_->met;
  mode_ = issues ? Mode::kIssue : now_->graph == nullptr ? Mode::kCapture : Mode::kReplay;
  now_->met = true;
  if (mode_ == Mode::kCapture) {
    now_->puts.resize(lanes_.size());
    BeginCapture();
  }
  for (Lane& lane : lanes_) lane.recorded.fill(0);
  for (Gpu& gpu : gpus_) ForkStep(gpu, start.first_sample);
}

// The number of the step's first sample is read by kernels of all ranks on a GPU. Of a capture all
// streams become part by waiting for the first one.
void CudaDevice::ForkStep(Gpu& gpu, int64_t first_sample) {
  const Queue first = ComputeQueue(gpu.first);
  char* const staged = StagingOf(first, sizeof(int64_t));
  if (staged == nullptr) return;
  std::memcpy(staged, &first_sample, sizeof(int64_t));
  if (mode_ == Mode::kReplay) return;
  Use(gpu.first);
  Keep(cudaMemcpyAsync(gpu.memory.step_sample.get(), staged, sizeof(int64_t),
                       cudaMemcpyHostToDevice, StreamOf(first)),
       "the step's sample");
  Keep(cudaEventRecord(gpu.fork.get(), StreamOf(first)), "the step's begin");
  const bool is_first = gpu.first == 0;
  const size_t own = gpu.memory.arenas.size();
  const size_t last = is_first ? lanes_.size() : 2 * (static_cast<size_t>(gpu.first) + own);
  for (size_t lane = LaneOf(first) + 1; lane < last; ++lane) {
    Keep(cudaStreamWaitEvent(lanes_[lane].stream.get(), gpu.fork.get(), 0), "the step's begin");
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
    for (const Gpu& gpu : gpus_) {
      error_.Update(CudaStatus(cudaSetDevice(gpu.number), "copies"));
      error_.Update(CudaStatus(cudaDeviceSynchronize(), "copies"));
    }
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
  Use(queue.place);
  Keep(cudaMemcpyAsync(At(queue.place, address), staged, static_cast<size_t>(bytes),
                       cudaMemcpyHostToDevice, UpToDate(queue)),
       "a copy to the GPU");
}

void CudaDevice::Zero(Queue queue, int64_t address, int64_t bytes) {
  if (mode_ == Mode::kReplay) return;
  Use(queue.place);
  Keep(cudaMemsetAsync(At(queue.place, address), 0, static_cast<size_t>(bytes), UpToDate(queue)),
       "zeros");
}

void CudaDevice::Copy(Queue queue, const void* from, void* to, int64_t bytes) {
  if (mode_ == Mode::kReplay) return;
  Use(queue.place);
  Keep(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice,
                       UpToDate(queue)),
       "a copy");
}

cudaStream_t CudaDevice::UpToDate(Queue queue) {
  Lane& lane = lanes_[LaneOf(queue)];
  IssueSteps(&lane);
  return lane.stream.get();
}

void CudaDevice::IssueSteps(Lane* lane) {
  if (lane->steps.empty()) return;
  Use(static_cast<int>(lane - lanes_.data()) / 2);
  const int error =
      lane->issue(lane->stream.get(), lane->steps.data(), static_cast<int>(lane->steps.size()));
  Keep(static_cast<cudaError_t>(error), "an optimizer's steps");
  lane->steps.clear();
}

void CudaDevice::Join(Queue queue, const cuda::JoinedKernel& kernel, const KernelRun& run) {
  Lane& lane = lanes_[LaneOf(queue)];
  const cuda::StepPart part = kernel.PartOf(run);
  const bool joins = lane.issue == kernel.issue() && cuda::MayJoin(lane.steps, part);
  if (!joins) IssueSteps(&lane);
  lane.issue = kernel.issue();
  lane.steps.push_back(part);
}

absl::Status CudaDevice::RunKernel(Queue queue, const Kernel& kernel, const KernelRun& run,
                                   int /*worker*/) {
  if (mode_ == Mode::kReplay) return absl::OkStatus();
  Use(queue.place);
  const Gpu& gpu = GpuOf(queue.place);
  KernelRun issued = run;
  issued.workspace = gpu.memory.workspaces[static_cast<size_t>(queue.place - gpu.first)].get();
  issued.queue = StreamOf(queue);
  issued.step_sample = reinterpret_cast<const int64_t*>(gpu.memory.step_sample.get());
  const auto* const joined = dynamic_cast<const cuda::JoinedKernel*>(&kernel);
  if (joined != nullptr && !awaits_each_) {
    Join(queue, *joined, issued);
    return absl::OkStatus();
  }
  UpToDate(queue);
  MGC_RETURN_IF_ERROR(kernel.Run(issued, parallel_));
  if (!awaits_each_) return absl::OkStatus();
  return CudaStatus(AwaitStream(StreamOf(queue)), "the kernel");
}

absl::Status CudaDevice::RunExchanges(Queue queue, const ExchangeGroup& group,
                                      absl::Span<const TiledExchange> exchanges) {
  if (mode_ == Mode::kReplay) return absl::OkStatus();
  UpToDate(queue);
  MGC_RETURN_IF_ERROR(moves_->RunExchanges(queue.place, group, exchanges));
  if (!awaits_each_) return absl::OkStatus();
  return CudaStatus(AwaitStream(StreamOf(queue)), "the exchange");
}

absl::Status CudaDevice::RunTransfer(Queue queue, const FarTransfer& transfer) {
  UpToDate(queue);
  MGC_RETURN_IF_ERROR(moves_->RunTransfer(queue.place, transfer));
  if (!awaits_each_) return absl::OkStatus();
  return CudaStatus(AwaitStream(StreamOf(queue)), "the transfer");
}

void CudaDevice::Tell(Queue queue, std::function<void()> told) {
  Keep(AwaitStream(UpToDate(queue)), "a queue");
  told();
}

void CudaDevice::Record(const Mark& mark) {
  if (mode_ == Mode::kReplay) return;
  Use(mark.place);
  Lane& lane = lanes_[LaneOf(QueueOf(mark))];
  IssueSteps(&lane);
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
    lane.recorded[static_cast<size_t>(mark.kind)] = mark.count;
  }
  Keep(cudaEventRecord(event, lane.stream.get()), "a mark");
}

void CudaDevice::Await(Queue queue, const Mark& mark, Wait why) {
  if (mode_ == Mode::kReplay || mark.count == 0 || LaneOf(queue) == LaneOf(QueueOf(mark))) return;
  // NCCL lets members meet, each in its own stream.
  const bool meets = why == Wait::kMembersMeet || why == Wait::kMembersEnd;
  if (meets && moves_->by_nccl()) return;
  cudaEvent_t event = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::deque<CudaEvent>& events =
        lanes_[LaneOf(QueueOf(mark))].marks[static_cast<size_t>(mark.kind)];
    if (static_cast<int64_t>(events.size()) < mark.count) return;  // it could not be made
    event = events[static_cast<size_t>(mark.count - 1)].get();
  }
  Keep(cudaStreamWaitEvent(UpToDate(queue), event, 0), "a wait for a mark");
}

absl::Status CudaDevice::Check() {
  const std::lock_guard<std::mutex> lock(mutex_);
  error_.Update(CudaStatus(cudaPeekAtLastError(), "a call before"));
  return error_;
}

absl::Status CudaDevice::Drain(bool complete) {
  if (!complete) Abort();  // others may wait for what will not come, and be waited for
  for (Lane& lane : lanes_) IssueSteps(&lane);
  Use(0);
  if (mode_ == Mode::kCapture) EndCapture();
  if (mode_ != Mode::kIssue && complete && now_->graph != nullptr) {
    Keep(cudaGraphLaunch(now_->graph.get(), lanes_[0].stream.get()), "a step");
  }
  for (Lane& lane : lanes_) Keep(AwaitStream(lane.stream.get()), "a step");
  mode_ = Mode::kBetween;
  const absl::Status met = moves_->Check();
  const std::lock_guard<std::mutex> lock(mutex_);
  staging_.Reset();
  if (complete) error_.Update(met);
  return error_;
}

void CudaDevice::Look(Queue queue, int64_t address, int64_t bytes,
                      absl::FunctionRef<void(const char* from)> look) {
  Use(queue.place);
  UpToDate(queue);
  std::vector<char> copy(static_cast<size_t>(bytes));
  Keep(cudaMemcpyAsync(copy.data(), At(queue.place, address), copy.size(), cudaMemcpyDeviceToHost,
                       StreamOf(queue)),
       "a look");
  Keep(AwaitStream(StreamOf(queue)), "a look");
  look(copy.data());
}

// Of a step only what it leaves as it was may be read, and that lies there already.
void CudaDevice::Get(int place, int64_t address, int64_t bytes, void* to) {
  if (mode_ == Mode::kBetween) {
    for (Queue queue : {ComputeQueue(place), CommQueue(place)}) {
      Keep(AwaitStream(StreamOf(queue)), "a read");
    }
  }
  Use(place);
  const cudaStream_t reading = GpuOf(place).reading.get();
  Keep(cudaMemcpyAsync(to, At(place, address), static_cast<size_t>(bytes), cudaMemcpyDeviceToHost,
                       reading),
       "a read");
  Keep(cudaStreamSynchronize(reading), "a read");
}

}  // namespace mgc
