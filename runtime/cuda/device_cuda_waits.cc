// How the host waits for GPUs where NCCL is in use.

#include <thread>

#include "runtime/cuda/device_cuda.h"

namespace mgc {
namespace {

constexpr auto kLook = std::chrono::milliseconds(1);  // how often NCCL is asked how it is

}  // namespace

// Waits for what the stream has been given; no longer than NCCL, where it is in use, is well.
cudaError_t CudaDevice::AwaitStream(cudaStream_t stream) {
  if (!moves_->by_nccl()) return cudaStreamSynchronize(stream);
  auto looked = std::chrono::steady_clock::now();
  while (true) {
    const cudaError_t state = cudaStreamQuery(stream);
    if (state != cudaErrorNotReady) return state;
    cudaGetLastError();  // which that has become
    const auto now = std::chrono::steady_clock::now();
    if (now - looked > kLook) {
      looked = now;
      if (!MayWaitOn()) return cudaStreamSynchronize(stream);
    }
    std::this_thread::yield();
  }
}

// Whether what NCCL has been given may still end by itself. If not, it has been given up.
bool CudaDevice::MayWaitOn() {
  const absl::Status met = moves_->Check();
  if (met.ok()) return true;
  const auto now = std::chrono::steady_clock::now();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!unwell_.has_value()) unwell_ = now;
    if (!absl::IsAborted(met) && now - *unwell_ < kToHearWhy) return true;
    if (items_done_.empty()) NoteItemsDone();
    error_.Update(met);
  }
  Abort();
  return false;
}

// Of the step that runs, if its calls go to the streams. Mutex held.
void CudaDevice::NoteItemsDone() {
  if (mode_ != Mode::kIssue) return;
  for (int place = 0; place < static_cast<int>(gpu_of_.size()); ++place) {
    const Lane& lane = lanes_[LaneOf(CommQueue(place))];
    int64_t& done = items_done_.emplace_back(0);
    for (MarkKind kind : {MarkKind::kCollectives, MarkKind::kTransfers}) {
      const std::deque<CudaEvent>& events = lane.marks[static_cast<size_t>(kind)];
      const auto recorded = static_cast<size_t>(lane.recorded[static_cast<size_t>(kind)]);
      size_t reached = 0;
      while (reached < recorded && cudaEventQuery(events[reached].get()) == cudaSuccess) ++reached;
      done += static_cast<int64_t>(reached);
    }
  }
  cudaGetLastError();  // that something is not ready
}

int64_t CudaDevice::items_done(int place) const {
  const auto at = static_cast<size_t>(place);
  return at < items_done_.size() ? items_done_[at] : -1;
}

}  // namespace mgc
