// The devices and errors of the emulated runtime.
#include "kernels/cuda/emulator/runtime.h"

#include <algorithm>
#include <string>

#include "kernels/cuda/emulator/fault.h"
#include "kernels/cuda/emulator/state.h"
#include "kernels/cuda/emulator/watch.h"

namespace mgc::cuda::emulator {
namespace {

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};

constexpr ErrorText kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidPitchValue, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection",
     "invalid copy direction for memcpy"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorIllegalState, "cudaErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {cudaErrorPeerAccessUnsupported, "cudaErrorPeerAccessUnsupported",
     "peer access is not supported between these two devices"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled",
     "peer access is already enabled"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const ErrorText* Find(cudaError_t error) {
  const auto* const found = std::find_if(std::begin(kErrors), std::end(kErrors),
                                         [&](const ErrorText& e) { return e.error == error; });
  return found == std::end(kErrors) ? nullptr : found;
}

// An H100's.
struct Attribute {
  cudaDeviceAttr attr;
  int value;
};
constexpr Attribute kAttributes[] = {
    {cudaDevAttrMaxThreadsPerBlock, 1024},
    {cudaDevAttrMaxSharedMemoryPerBlock, 48 << 10},
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrClockRate, 1980000},
    {cudaDevAttrMultiProcessorCount, 132},
    {cudaDevAttrMemoryClockRate, 2619000},
    {cudaDevAttrGlobalMemoryBusWidth, 5120},
    {cudaDevAttrL2CacheSize, 50 << 20},
    {cudaDevAttrAsyncEngineCount, 3},
    {cudaDevAttrComputeCapabilityMajor, 9},
    {cudaDevAttrComputeCapabilityMinor, 0},
    {cudaDevAttrMaxSharedMemoryPerMultiprocessor, 228 << 10},
    {cudaDevAttrMaxSharedMemoryPerBlockOptin, 227 << 10},
};
constexpr int kGreatestPriority = -5;

template <class T>
int64_t CountLive(const Handles<T>& handles) {
  return std::count_if(handles.made().begin(), handles.made().end(),
                       [](const auto& handle) { return handle->live; });
}

}  // namespace

std::string Leaks() {
  Call call("Leaks");
  const State& state = call.state();
  std::string text = state.memory.Live();
  const auto add = [&](int64_t count, const char* what) {
    if (count > 0) text += Text(text.empty() ? "" : ", ", count, " ", what);
  };
  add(static_cast<int64_t>(state.live_streams.size() - state.legacy.size()), "streams");
  add(CountLive(state.events), "events");
  add(CountLive(state.graphs), "graphs");
  add(CountLive(state.execs), "executable graphs");
  add(static_cast<int64_t>(state.captures.size()), "captures");
  return text;
}

void SetDeviceMemory(size_t bytes) {
  Call call("SetDeviceMemory");
  call.state().memory.set_device_bytes(bytes);
}

void SetDevices(int count, bool peer_access) {
  Call call("SetDevices");
  call.state().SetCount(count);
  call.state().have_peer_access = peer_access;
  call.state().peers.clear();
}

// The device, or a fault.
cudaError_t RefuseDevice(Call* call, int device) {
  if (device >= 0 && device < call->state().devices) return cudaSuccess;
  return call->Wrong(cudaErrorInvalidDevice,
                     Text("is given device ", device, " of ", call->state().devices));
}

}  // namespace mgc::cuda::emulator

extern "C" {
namespace emulator = mgc::cuda::emulator;

cudaError_t cudaGetLastError() { return emulator::TakeError(); }
cudaError_t cudaPeekAtLastError() { return emulator::PeekError(); }

const char* cudaGetErrorName(cudaError_t error) {
  const auto* const found = emulator::Find(error);
  return found == nullptr ? "unrecognized error code" : found->name;
}
const char* cudaGetErrorString(cudaError_t error) {
  const auto* const found = emulator::Find(error);
  return found == nullptr ? "unrecognized error code" : found->text;
}

cudaError_t cudaGetDevice(int* device) {
  *device = emulator::CurrentDevice();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  emulator::Call call("cudaSetDevice");
  const cudaError_t refused = emulator::RefuseDevice(&call, device);
  if (refused == cudaSuccess) emulator::SetCurrentDevice(device);
  return refused;
}
cudaError_t cudaGetDeviceCount(int* count) {
  emulator::Call call("cudaGetDeviceCount");
  *count = call.state().devices;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  emulator::Call call("cudaDeviceGetPCIBusId");
  const cudaError_t refused = emulator::RefuseDevice(&call, device);
  if (refused != cudaSuccess) return refused;
  const std::string text = emulator::Text("0000:", 10 + device, ":00.0");
  if (static_cast<size_t>(length) <= text.size()) {
    return call.Wrong(cudaErrorInvalidValue, "has no room for the text");
  }
  std::copy_n(text.c_str(), text.size() + 1, id);
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  emulator::Call call("cudaDeviceCanAccessPeer");
  for (int each : {device, peer}) {
    const cudaError_t refused = emulator::RefuseDevice(&call, each);
    if (refused != cudaSuccess) return refused;
  }
  *can = device != peer && call.state().have_peer_access ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  emulator::Call call("cudaDeviceEnablePeerAccess");
  const cudaError_t refused = emulator::RefuseDevice(&call, peer);
  if (refused != cudaSuccess) return refused;
  const int device = emulator::CurrentDevice();
  if (flags != 0 || device == peer) {
    return call.Wrong(cudaErrorInvalidValue, "is given flags, or the device itself");
  }
  if (!call.state().have_peer_access) return call.Return(cudaErrorPeerAccessUnsupported);
  const bool is_new = call.state().peers.insert({device, peer}).second;
  return is_new ? cudaSuccess : call.Return(cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attr, int device) {
  emulator::Call call("cudaDeviceGetAttribute");
  const cudaError_t refused = emulator::RefuseDevice(&call, device);
  if (refused != cudaSuccess) return refused;
  for (const auto& known : emulator::kAttributes) {
    if (known.attr != attr) continue;
    *value = known.value;
    return cudaSuccess;
  }
  return call.Wrong(cudaErrorInvalidValue, "is asked for an attribute that is not emulated");
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = emulator::kGreatestPriority;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  emulator::Call call("cudaDeviceSynchronize", emulator::Call::Kind::kUnsafe);
  if (call.refused() != cudaSuccess) return call.refused();
  const int device = emulator::CurrentDevice();
  call.state().scheduler.FinishDevice(call.lock(), device);
  for (const CUstream_st* stream : call.state().live_streams) {
    const bool is_over = stream->last != nullptr && stream->last->done;
    if (is_over && stream->device == device) call.state().scheduler.HostKnows(*stream->last);
  }
  return call.Return(static_cast<cudaError_t>(emulator::StickyError()));
}
}
