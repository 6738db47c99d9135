// Streams and events of the emulated runtime.
#include <algorithm>
#include <chrono>
#include <utility>

#include "kernels/cuda/emulator/fault.h"
#include "kernels/cuda/emulator/state.h"

namespace mgc::cuda::emulator {
namespace {

cudaError_t MakeStream(const char* name, cudaStream_t* made, unsigned flags) {
  Call call(name);
  if (call.refused() != cudaSuccess) return call.refused();
  if (flags > cudaStreamNonBlocking) return call.Wrong(cudaErrorInvalidValue, "has unknown flags");
  State& state = call.state();
  CUstream_st* const stream = state.streams.Make();
  stream->name = Text("stream ", state.streams.made().size() - state.legacy.size());
  stream->device = CurrentDevice();
  stream->blocking = flags == cudaStreamDefault;
  stream->track = state.scheduler.NewTrack(stream->device);
  state.live_streams.insert(stream);
  *made = stream;
  return cudaSuccess;
}

cudaError_t DestroyStream(cudaStream_t handle) {
  Call call("cudaStreamDestroy", Call::Kind::kFrees);
  CUstream_st* const stream = call.StreamOf(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  State& state = call.state();
  if (stream->is_default) {
    return call.Wrong(cudaErrorInvalidResourceHandle, "is given the default stream");
  }
  if (stream->capture != nullptr) {
    stream->capture->invalid = true;
    return call.Wrong(cudaErrorStreamCaptureUnsupported,
                      Text("destroys ", stream->name, ", which is captured"));
  }
  // The default stream still waits for what a blocking stream has been given.
  if (stream->blocking && stream->last != nullptr && !stream->last->done) {
    CUstream_st& legacy = *state.legacy[static_cast<size_t>(stream->device)];
    legacy.last = state.scheduler.Issue({}, legacy.track, {legacy.last, stream->last});
  }
  stream->live = false;
  stream->track = nullptr;
  state.live_streams.erase(stream);
  return call.Return(static_cast<cudaError_t>(StickyError()));
}

// The event, or null and a fault.
CUevent_st* EventOf(Call* call, cudaEvent_t event) {
  if (call->state().events.IsLive(event)) return event;
  call->Wrong(cudaErrorInvalidResourceHandle,
              "is given an event that is destroyed or was never made");
  return nullptr;
}

// Whether an event was recorded in what is captured, or has been. An error then.
cudaError_t RefuseCaptured(Call* call, CUevent_st* event) {
  if (event->capture == nullptr) return cudaSuccess;
  event->capture->invalid = true;
  return call->Wrong(cudaErrorCapturedEvent,
                     Text("asks for ", event->name, ", which was recorded in a capture"));
}

// What a call that wants to know whether an event is over begins with.
CUevent_st* Asked(Call* call, cudaEvent_t handle, cudaError_t* error) {
  *error = call->refused();
  if (*error != cudaSuccess) return nullptr;
  CUevent_st* const event = EventOf(call, handle);
  *error = event == nullptr ? cudaErrorInvalidResourceHandle : RefuseCaptured(call, event);
  if (*error != cudaSuccess) return nullptr;
  if (!event->recorded) {
    Fault(Text(call->name(), " asks for ", event->name, ", which was never recorded"));
  }
  return event;
}

// A stream waits for an event recorded in a capture: it takes part in that one.
cudaError_t JoinCapture(Call* call, CUstream_st* stream, const CUevent_st& event) {
  const CapturePtr& capture = event.capture;
  const auto& on = call->state().captures;
  if (std::find(on.begin(), on.end(), capture) == on.end()) {
    return call->Wrong(cudaErrorCapturedEvent,
                       Text("waits for ", event.name, " of a capture that has ended"));
  }
  if (capture->invalid) return call->Return(cudaErrorStreamCaptureInvalidated);
  if (stream->capture != nullptr && stream->capture != capture) {
    stream->capture->invalid = capture->invalid = true;
    return call->Wrong(cudaErrorStreamCaptureMerge,
                       Text("would join two captures at ", event.name));
  }
  if (stream->is_default) {
    capture->invalid = true;
    return call->Wrong(cudaErrorStreamCaptureImplicit, "would capture the default stream");
  }
  if (stream->capture == nullptr) {
    stream->capture = capture;
    stream->branch = capture->streams.size();
    stream->last_nodes.clear();
    capture->streams.push_back(stream);
  }
  for (size_t node : event.nodes) {
    auto& last = stream->last_nodes;
    if (std::find(last.begin(), last.end(), node) == last.end()) last.push_back(node);
  }
  return cudaSuccess;
}

cudaError_t WaitEvent(cudaStream_t stream_handle, cudaEvent_t event_handle) {
  Call call("cudaStreamWaitEvent");
  if (call.refused() != cudaSuccess) return call.refused();
  CUstream_st* const stream = call.StreamOf(stream_handle);
  CUevent_st* const event = stream == nullptr ? nullptr : EventOf(&call, event_handle);
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  if (event->capture != nullptr) return JoinCapture(&call, stream, *event);
  if (!event->recorded) {
    Fault(Text(stream->name, " waits for ", event->name, ", which was never recorded"));
    return cudaSuccess;
  }
  if (stream->capture != nullptr) {
    stream->capture->invalid = true;
    return call.Wrong(cudaErrorStreamCaptureIsolation,
                      Text("makes ", stream->name, ", which is captured, wait for ", event->name,
                           ", which was recorded outside of the capture"));
  }
  return call.Issue(stream, {Text("wait of ", stream->name), nullptr, {}, false}, {event->item});
}

cudaError_t Record(cudaEvent_t event_handle, cudaStream_t stream_handle) {
  Call call("cudaEventRecord");
  if (call.refused() != cudaSuccess) return call.refused();
  CUstream_st* const stream = call.StreamOf(stream_handle);
  CUevent_st* const event = stream == nullptr ? nullptr : EventOf(&call, event_handle);
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  if (event->device != stream->device) {
    return call.Wrong(cudaErrorInvalidResourceHandle,
                      Text("records ", event->name, " of device ", event->device, " in ",
                           stream->name, " of device ", stream->device));
  }
  event->recorded = true;
  event->capture = stream->capture;
  event->nodes = stream->last_nodes;
  if (stream->capture != nullptr) return cudaSuccess;
  const cudaError_t error =
      call.Issue(stream, {Text("record of ", event->name), nullptr, {}, false});
  event->item = stream->last;
  return error;
}

// Whether work is over, having done a step towards it.
cudaError_t Query(Call* call, const ItemPtr& item) {
  State& state = call->state();
  if (item != nullptr && !item->done) state.scheduler.Step(call->lock());
  const auto sticky = static_cast<cudaError_t>(StickyError());
  if (sticky != cudaSuccess) return call->Return(sticky);
  if (item != nullptr && !item->done) return call->Return(cudaErrorNotReady);
  if (item != nullptr) state.scheduler.HostKnows(*item);
  return cudaSuccess;
}

cudaError_t Synchronize(Call* call, const ItemPtr& item) {
  call->state().scheduler.Finish(call->lock(), item);
  return call->Return(static_cast<cudaError_t>(StickyError()));
}

cudaError_t ElapsedTime(float* ms, cudaEvent_t start_handle, cudaEvent_t end_handle) {
  Call call("cudaEventElapsedTime");
  if (call.refused() != cudaSuccess) return call.refused();
  CUevent_st* const start = EventOf(&call, start_handle);
  CUevent_st* const end = start == nullptr ? nullptr : EventOf(&call, end_handle);
  if (end == nullptr) return cudaErrorInvalidResourceHandle;
  for (const CUevent_st* event : {start, end}) {
    if (!event->timed || event->item == nullptr) {
      return call.Wrong(cudaErrorInvalidResourceHandle,
                        Text("is given ", event->name, ", which has no time"));
    }
  }
  if (!start->item->done || !end->item->done) return call.Return(cudaErrorNotReady);
  *ms = std::chrono::duration<float, std::milli>(end->item->ended - start->item->ended).count();
  return cudaSuccess;
}

}  // namespace
}  // namespace mgc::cuda::emulator

extern "C" {
namespace emulator = mgc::cuda::emulator;

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return emulator::MakeStream("cudaStreamCreate", stream, cudaStreamDefault);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return emulator::MakeStream("cudaStreamCreateWithFlags", stream, flags);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags,
                                         int /*priority*/) {
  return emulator::MakeStream("cudaStreamCreateWithPriority", stream, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return emulator::DestroyStream(stream); }

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  emulator::Call call("cudaStreamSynchronize");
  if (call.refused() != cudaSuccess) return call.refused();
  CUstream_st* const stream = call.StreamOf(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  const cudaError_t error = call.RefuseCapturing(stream);
  if (error != cudaSuccess) return error;
  return emulator::Synchronize(&call, call.LastOf(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  emulator::Call call("cudaStreamQuery");
  if (call.refused() != cudaSuccess) return call.refused();
  CUstream_st* const stream = call.StreamOf(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  const cudaError_t error = call.RefuseCapturing(stream);
  return error != cudaSuccess ? error : emulator::Query(&call, call.LastOf(stream));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int /*flags*/) {
  return emulator::WaitEvent(stream, event);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  emulator::Call call("cudaLaunchHostFunc");
  if (call.refused() != cudaSuccess) return call.refused();
  CUstream_st* const stream = call.StreamOf(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  const auto run = [function, data] {
    emulator::SetInHostFunction(true);
    function(data);
    emulator::SetInHostFunction(false);
  };
  const auto number = call.state().functions++;
  return call.Issue(stream, {emulator::Text("host function ", number), run, {}, true});
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* made, unsigned int flags) {
  emulator::Call call("cudaEventCreateWithFlags");
  if (call.refused() != cudaSuccess) return call.refused();
  auto& events = call.state().events;
  CUevent_st* const event = events.Make();
  event->name = emulator::Text("event ", events.made().size() - 1);
  event->device = emulator::CurrentDevice();
  event->timed = (flags & cudaEventDisableTiming) == 0;
  *made = event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return emulator::Record(event, stream);
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  emulator::Call call("cudaEventQuery", emulator::Call::Kind::kUnsafe);
  cudaError_t error;
  CUevent_st* const event = emulator::Asked(&call, handle, &error);
  return event == nullptr ? error : emulator::Query(&call, emulator::ItemPtr(event->item));
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  emulator::Call call("cudaEventSynchronize", emulator::Call::Kind::kUnsafe);
  cudaError_t error;
  CUevent_st* const event = emulator::Asked(&call, handle, &error);
  return event == nullptr ? error : emulator::Synchronize(&call, emulator::ItemPtr(event->item));
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return emulator::ElapsedTime(ms, start, end);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  emulator::Call call("cudaEventDestroy", emulator::Call::Kind::kFrees);
  CUevent_st* const event = emulator::EventOf(&call, handle);
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  event->live = false;
  event->item = nullptr;
  event->capture = nullptr;
  return call.Return(static_cast<cudaError_t>(emulator::StickyError()));
}
}
