#include "kernels/cuda/emulator/state.h"

#include <algorithm>

#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/emulator/fault.h"

namespace mgc::cuda::emulator {
namespace {

struct OfThread {
  cudaError_t last_error = cudaSuccess;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  bool in_host_function = false;
  int device = 0;
};
thread_local OfThread of_thread;

}  // namespace

State::State() { SetCount(kDevices); }

void State::SetCount(int count) {
  devices = count;
  while (static_cast<int>(legacy.size()) < count) {
    CUstream_st* const stream = streams.Make();
    stream->device = static_cast<int>(legacy.size());
    stream->name = "the default stream";
    if (stream->device > 0) stream->name += Text(" of device ", stream->device);
    stream->is_default = true;
    stream->track = scheduler.NewTrack(stream->device);
    live_streams.insert(stream);
    legacy.push_back(stream);
  }
}

int CurrentDevice() { return of_thread.device; }
void SetCurrentDevice(int device) { of_thread.device = device; }

State& TheState() {
  static State* const state = new State;
  return *state;
}

cudaError_t PeekError() { return of_thread.last_error; }

cudaError_t TakeError() {
  const cudaError_t error = of_thread.last_error;
  of_thread.last_error = static_cast<cudaError_t>(StickyError());
  return error;
}

cudaStreamCaptureMode ExchangeMode(cudaStreamCaptureMode mode) {
  std::swap(mode, of_thread.mode);
  return mode;
}

void SetInHostFunction(bool in) { of_thread.in_host_function = in; }

Call::Call(const char* name, Kind kind) : name_(name), state_(TheState()), lock_(state_.mutex) {
  refused_ = Refuse(kind);
}

Call::~Call() = default;

cudaError_t Call::Refuse(Kind kind) {
  if (of_thread.in_host_function) {
    return Wrong(cudaErrorNotPermitted, "is called by a function of cudaLaunchHostFunc");
  }
  const auto sticky = static_cast<cudaError_t>(StickyError());
  if (sticky != cudaSuccess) return Return(sticky);
  return kind == Kind::kUnsafe ? RefuseCapturing(nullptr) : cudaSuccess;
}

cudaError_t Call::Return(cudaError_t error) {
  if (error != cudaSuccess) of_thread.last_error = error;
  return error;
}

cudaError_t Call::Wrong(cudaError_t error, const std::string& what) {
  Fault(Text(name_, " ", what));
  return Return(error);
}

CUstream_st* Call::StreamOf(cudaStream_t stream) {
  const auto legacy = reinterpret_cast<cudaStream_t>(1);
  if (stream == nullptr || stream == legacy) {
    return state_.legacy[static_cast<size_t>(CurrentDevice())];
  }
  if (state_.live_streams.count(stream) > 0) return stream;
  const bool was = std::any_of(state_.streams.made().begin(), state_.streams.made().end(),
                               [&](const auto& made) { return made.get() == stream; });
  Wrong(cudaErrorInvalidResourceHandle,
        was ? Text("is given ", stream->name, ", which is destroyed")
            : std::string("is given a stream that was never made"));
  return nullptr;
}

cudaError_t Call::RefuseCapturing(CUstream_st* stream) {
  if (stream != nullptr) {
    if (stream->capture == nullptr) return cudaSuccess;
    stream->capture->invalid = true;
    return Wrong(cudaErrorStreamCaptureUnsupported,
                 Text("waits for ", stream->name, ", which is captured"));
  }
  if (of_thread.mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  const auto me = std::this_thread::get_id();
  for (const CapturePtr& capture : state_.captures) {
    if (capture->mode == cudaStreamCaptureModeRelaxed) continue;
    const bool others = capture->mode == cudaStreamCaptureModeGlobal &&
                        of_thread.mode == cudaStreamCaptureModeGlobal;
    if (capture->thread != me && !others) continue;
    capture->invalid = true;
    return Wrong(cudaErrorStreamCaptureUnsupported,
                 Text("is called while ", capture->origin->name, " is captured"));
  }
  return cudaSuccess;
}

std::string Call::WhyOutOfReach(int device, const void* at) const {
  const int holder = state_.memory.DeviceOf(at);
  if (holder < 0 || holder == device || state_.peers.count({device, holder}) > 0) return "";
  return Text("memory of device ", holder, " on device ", device,
              ", which has not been given access to it");
}

cudaError_t Call::Issue(CUstream_st* stream, Work work, const std::vector<ItemPtr>& also) {
  if (stream->capture != nullptr) {
    Capture& capture = *stream->capture;
    if (capture.invalid) return Return(cudaErrorStreamCaptureInvalidated);
    capture.nodes.push_back({std::move(work), stream->last_nodes, stream->branch, stream->device});
    stream->last_nodes = {capture.nodes.size() - 1};
    return cudaSuccess;
  }
  std::vector<ItemPtr> before = also;
  before.push_back(stream->last);
  if (stream->is_default) {
    for (CUstream_st* other : state_.live_streams) {
      if (!other->blocking || other->device != stream->device) continue;
      if (other->capture != nullptr) {
        other->capture->invalid = true;
        return Wrong(
            cudaErrorStreamCaptureImplicit,
            Text("uses the default stream, which waits for ", other->name, ", which is captured"));
      }
      before.push_back(other->last);
    }
  } else if (stream->blocking) {
    before.push_back(state_.legacy[static_cast<size_t>(stream->device)]->last);
  }
  stream->last = state_.scheduler.Issue(std::move(work), stream->track, before);
  return cudaSuccess;
}

ItemPtr Call::LastOf(CUstream_st* stream) {
  // The default stream is also given what other streams have been.
  if (stream->is_default) Issue(stream, {"wait of the default stream", nullptr, {}, false});
  return stream->last;
}

}  // namespace mgc::cuda::emulator
