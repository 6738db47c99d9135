// Memory, copies and memsets of the emulated runtime.
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "kernels/cuda/emulator/fault.h"
#include "kernels/cuda/emulator/state.h"

namespace mgc::cuda::emulator {
namespace {

constexpr int kUndefinedByte = 0xff;

cudaError_t Allocate(const char* name, MemoryKind kind, void** at, size_t bytes) {
  Call call(name, Call::Kind::kUnsafe);
  if (call.refused() != cudaSuccess) return call.refused();
  if (at == nullptr) return call.Wrong(cudaErrorInvalidValue, "has nowhere to put the address");
  *at = nullptr;
  if (bytes == 0) return cudaSuccess;
  *at = call.state().memory.Allocate(kind, bytes, CurrentDevice());
  return call.Return(*at == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

// As CUDA's, waits for all that has been issued. What frees memory that something uses leans on
// that, and is a fault.
cudaError_t Free(const char* name, MemoryKind kind, void* at) {
  Call call(name, Call::Kind::kFrees);
  if (call.refused() != cudaSuccess && StickyError() == 0) return call.refused();
  if (at == nullptr) return cudaSuccess;
  State& state = call.state();
  const std::string user = state.scheduler.UserOf(state.memory.RangeOf(at));
  if (!user.empty()) Fault(Text(name, " frees memory that ", user, " uses, which is not done"));
  state.scheduler.FinishAll(call.lock());
  const std::string wrong = state.memory.Free(kind, at);
  if (!wrong.empty()) return call.Wrong(cudaErrorInvalidValue, "is wrong: " + wrong);
  return call.Return(static_cast<cudaError_t>(StickyError()));
}

struct Copying {
  void* to;
  const void* from;
  size_t bytes;
  MemoryKind to_kind, from_kind;
};

bool FitsDirection(const Copying& c, cudaMemcpyKind kind) {
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  return kind == cudaMemcpyDefault || (to_device == (c.to_kind == MemoryKind::kDevice) &&
                                       from_device == (c.from_kind == MemoryKind::kDevice));
}

// What is wrong with a copy's arguments; "" nothing.
std::string WrongIn(const Memory& memory, const Copying& c, cudaMemcpyKind kind) {
  const Range read{c.from, c.bytes, false}, written{c.to, c.bytes, true};
  std::string wrong = memory.Check("reads", read);
  if (wrong.empty()) wrong = memory.Check("writes", written);
  if (!wrong.empty()) return wrong;
  if (!FitsDirection(c, kind)) {
    return Text("copies from ", NameOf(c.from_kind), " to ", NameOf(c.to_kind),
                " and says otherwise");
  }
  if (read.begin() < written.end() && written.begin() < read.end()) {
    return "copies to bytes that it reads";
  }
  return "";
}

Work WorkOf(const Copying& c, int64_t number) {
  Work work;
  work.what = Text("copy ", number);
  const Range read{c.from, c.bytes, false}, written{c.to, c.bytes, true};
  if (c.to_kind != MemoryKind::kPageable) work.ranges.push_back(written);
  if (c.from_kind == MemoryKind::kPageable) {  // read now
    const auto staged =
        std::make_shared<const std::string>(static_cast<const char*>(c.from), c.bytes);
    work.run = [c, staged] { std::memcpy(c.to, staged->data(), c.bytes); };
  } else {
    work.ranges.push_back(read);
    work.run = [c] { std::memcpy(c.to, c.from, c.bytes); };
  }
  return work;
}

cudaError_t Copy(Call* call, void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                 cudaStream_t handle, bool blocks) {
  if (call->refused() != cudaSuccess) return call->refused();
  CUstream_st* const stream = call->StreamOf(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (bytes == 0) return cudaSuccess;
  State& state = call->state();
  const Memory& memory = state.memory;
  const Copying c{to, from, bytes, memory.KindOf(to), memory.KindOf(from)};
  const std::string wrong = WrongIn(memory, c, kind);
  if (!wrong.empty()) return call->Wrong(cudaErrorInvalidValue, wrong);
  const bool to_pageable = c.to_kind == MemoryKind::kPageable;
  const bool pageable = to_pageable || c.from_kind == MemoryKind::kPageable;
  if (stream->capture != nullptr && pageable) {
    stream->capture->invalid = true;
    return call->Wrong(cudaErrorStreamCaptureUnsupported, "of pageable memory is captured");
  }
  // Nobody may look before it is done.
  const bool unused = state.scheduler.UserOf({to, bytes, true}).empty();
  if (c.to_kind == MemoryKind::kPinned && stream->capture == nullptr && unused) {
    std::memset(to, kUndefinedByte, bytes);
  }
  const cudaError_t error = call->Issue(stream, WorkOf(c, state.copies++));
  const bool on_device = c.to_kind == MemoryKind::kDevice && c.from_kind == MemoryKind::kDevice;
  if (error != cudaSuccess || (!to_pageable && (!blocks || on_device))) return error;
  state.scheduler.Finish(call->lock(), ItemPtr(stream->last));
  return call->Return(static_cast<cudaError_t>(StickyError()));
}

cudaError_t Memset(const char* name, void* to, size_t pitch, int value, size_t width, size_t height,
                   cudaStream_t handle) {
  Call call(name);
  if (call.refused() != cudaSuccess) return call.refused();
  CUstream_st* const stream = call.StreamOf(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (width == 0 || height == 0) return cudaSuccess;
  if (height > 1 && pitch < width) {
    return call.Wrong(cudaErrorInvalidValue,
                      Text("has rows of ", width, " bytes that lie ", pitch, " apart"));
  }
  State& state = call.state();
  char* const first = static_cast<char*>(to);
  char* const last = first + pitch * (height - 1);
  if (state.memory.KindOf(to) == MemoryKind::kPageable) {
    return call.Wrong(cudaErrorInvalidValue, "writes memory that is not the device's");
  }
  const std::string far = call.WhyOutOfReach(stream->device, to);
  if (!far.empty()) return call.Wrong(cudaErrorInvalidValue, "writes " + far);
  const size_t all = static_cast<size_t>(last + width - first);
  const std::string wrong = state.memory.Check("writes", {to, all, true});
  if (!wrong.empty()) return call.Wrong(cudaErrorInvalidValue, wrong);
  Work work{Text("memset ", state.memsets++), nullptr, {{first, width, true}}, false};
  if (height > 1) work.ranges.push_back({last, width, true});
  work.run = [=] {
    for (size_t row = 0; row < height; ++row) std::memset(first + row * pitch, value, width);
  };
  return call.Issue(stream, std::move(work));
}

}  // namespace
}  // namespace mgc::cuda::emulator

extern "C" {
namespace emulator = mgc::cuda::emulator;

cudaError_t cudaMalloc(void** at, size_t bytes) {
  return emulator::Allocate("cudaMalloc", emulator::MemoryKind::kDevice, at, bytes);
}
cudaError_t cudaFree(void* at) {
  return emulator::Free("cudaFree", emulator::MemoryKind::kDevice, at);
}
cudaError_t cudaMallocHost(void** at, size_t bytes) {
  return emulator::Allocate("cudaMallocHost", emulator::MemoryKind::kPinned, at, bytes);
}
cudaError_t cudaHostAlloc(void** at, size_t bytes, unsigned int /*flags*/) {
  return emulator::Allocate("cudaHostAlloc", emulator::MemoryKind::kPinned, at, bytes);
}
cudaError_t cudaFreeHost(void* at) {
  return emulator::Free("cudaFreeHost", emulator::MemoryKind::kPinned, at);
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  emulator::Call call("cudaMemGetInfo");
  if (call.refused() != cudaSuccess) return call.refused();
  const emulator::Memory& memory = call.state().memory;
  *total = memory.device_bytes();
  *free = memory.device_bytes() - memory.device_bytes_used(emulator::CurrentDevice());
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind) {
  emulator::Call call("cudaMemcpy", emulator::Call::Kind::kUnsafe);
  return emulator::Copy(&call, to, from, bytes, kind, nullptr, true);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
  emulator::Call call("cudaMemcpyAsync");
  return emulator::Copy(&call, to, from, bytes, kind, stream, false);
}

cudaError_t cudaMemset(void* at, int value, size_t bytes) {
  return emulator::Memset("cudaMemset", at, bytes, value, bytes, 1, nullptr);
}
cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t stream) {
  return emulator::Memset("cudaMemsetAsync", at, bytes, value, bytes, 1, stream);
}
cudaError_t cudaMemset2DAsync(void* at, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return emulator::Memset("cudaMemset2DAsync", at, pitch, value, width, height, stream);
}
}
