// Host code with one thing wrong each, which the emulated runtime must find; without it all is
// well.
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/emulator/plus_one.h"
#include "kernels/cuda/emulator/runtime.h"
#include "kernels/cuda/emulator/seeded_fault.h"

namespace mgc::cuda {
namespace {

using emulator::Counted;
using emulator::CountedFrom;
using emulator::Floats;
using emulator::kBytes;
using emulator::kCount;
using emulator::Outcome;
using emulator::PlusOne;
using emulator::PlusOneKernel;
using emulator::SeededFault;

// Two streams that order themselves with nobody, and two events.
struct Streams {
  Streams() {
    for (cudaStream_t* stream : {&a, &b}) {
      cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
    }
    for (cudaEvent_t* event : {&first, &second}) {
      cudaEventCreateWithFlags(event, cudaEventDisableTiming);
    }
  }
  ~Streams() {
    for (cudaStream_t stream : {a, b}) {
      cudaStreamSynchronize(stream);
      cudaStreamDestroy(stream);
    }
    for (cudaEvent_t event : {first, second}) cudaEventDestroy(event);
  }
  Streams(const Streams&) = delete;

  cudaStream_t a, b;
  cudaEvent_t first, second;
};

// Pinned memory, freed with this.
struct Pinned {
  Pinned() {
    void* memory = nullptr;
    cudaMallocHost(&memory, kBytes);
    at = static_cast<float*>(memory);
    for (int i = 0; i < kCount; ++i) at[i] = static_cast<float>(i);
  }
  ~Pinned() { cudaFreeHost(at); }
  Pinned(const Pinned&) = delete;

  std::vector<float> Get() const { return {at, at + kCount}; }

  float* at;
};

// What is captured from `stream` by `issue`, launched twice. The error of the end of the capture.
template <class Issue>
cudaError_t Captured(cudaStream_t stream, Issue issue,
                     cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
  cudaStreamBeginCapture(stream, mode);
  issue();
  cudaGraph_t graph = nullptr;
  const cudaError_t error = cudaStreamEndCapture(stream, &graph);
  if (error != cudaSuccess) return error;
  cudaGraphExec_t exec = nullptr;
  cudaGraphInstantiate(&exec, graph);
  cudaGraphDestroy(graph);
  for (int run = 0; run < 2; ++run) cudaGraphLaunch(exec, stream);
  cudaStreamSynchronize(stream);
  cudaGraphExecDestroy(exec);
  return error;
}

const char* const kUnordered = "no event orders the two";

void EventLeftOut(bool faulty, Outcome* outcome) {
  const Floats x(Counted(kCount)), y(kCount), z(kCount);
  {
    Streams s;
    PlusOne(s.a, x.at(), y.at());
    cudaEventRecord(s.first, s.a);
    if (!faulty) cudaStreamWaitEvent(s.b, s.first);
    PlusOne(s.b, y.at(), z.at());
  }
  outcome->got = z.Get();
  outcome->wanted = CountedFrom(2);
}

void EventTooEarly(bool faulty, Outcome* outcome) {
  const Floats x(Counted(kCount)), y(kCount), z(kCount);
  {
    Streams s;
    if (faulty) cudaEventRecord(s.first, s.a);
    PlusOne(s.a, x.at(), y.at());
    if (!faulty) cudaEventRecord(s.first, s.a);
    cudaStreamWaitEvent(s.b, s.first);
    PlusOne(s.b, y.at(), z.at());
  }
  outcome->got = z.Get();
  outcome->wanted = CountedFrom(2);
}

// What one stream still reads another overwrites.
void WriteAfterRead(bool faulty, Outcome* outcome) {
  const Floats x(Counted(kCount)), y(kCount);
  {
    Streams s;
    PlusOne(s.a, x.at(), y.at());
    cudaEventRecord(s.first, s.a);
    if (!faulty) cudaStreamWaitEvent(s.b, s.first);
    cudaMemsetAsync(x.at(), 0, kBytes, s.b);
  }
  outcome->got = y.Get();
  outcome->wanted = CountedFrom(1);
}

void WaitBeforeRecord(bool faulty, Outcome* outcome) {
  const Floats x(Counted(kCount)), y(kCount);
  {
    Streams s;
    if (faulty) cudaStreamWaitEvent(s.b, s.first);
    PlusOne(s.a, x.at(), y.at());
    cudaEventRecord(s.first, s.a);
    if (!faulty) cudaStreamWaitEvent(s.b, s.first);
  }
  outcome->got = y.Get();
  outcome->wanted = CountedFrom(1);
}

void HostWaitBeforeRecord(bool faulty, Outcome* /*outcome*/) {
  Streams s;
  if (!faulty) cudaEventRecord(s.first, s.a);
  cudaEventSynchronize(s.first);
}

void HostReadsTooEarly(bool faulty, Outcome* outcome) {
  const Floats x(Counted(kCount));
  const Pinned host;
  Streams s;
  cudaMemcpyAsync(host.at, x.at(), kBytes, cudaMemcpyDeviceToHost, s.a);
  cudaEventRecord(s.first, s.a);
  if (!faulty) cudaEventSynchronize(s.first);
  outcome->got = host.Get();
  outcome->wanted = Counted(kCount);
}

void HostWritesTooEarly(bool faulty, Outcome* outcome) {
  const Floats x(kCount);
  const Pinned host;
  {
    Streams s;
    cudaMemcpyAsync(x.at(), host.at, kBytes, cudaMemcpyHostToDevice, s.a);
    cudaEventRecord(s.first, s.a);
    if (!faulty) {
      while (cudaEventQuery(s.first) == cudaErrorNotReady) cudaGetLastError();
    }
    host.at[0] = -1;
  }
  outcome->got = x.Get();
  outcome->wanted = Counted(kCount);
}

std::vector<SeededFault> OfOrder() {
  return {
      {"EventLeftOut", kUnordered, EventLeftOut},
      {"EventTooEarly", kUnordered, EventTooEarly},
      {"WriteAfterRead", kUnordered, WriteAfterRead},
      {"WaitBeforeRecord", "which was never recorded", WaitBeforeRecord},
      {"HostWaitBeforeRecord", "which was never recorded", HostWaitBeforeRecord},
      {"HostReadsTooEarly", "", HostReadsTooEarly},
      {"HostWritesTooEarly", "", HostWritesTooEarly},
      {"ResultsReadFromAnotherStream", kUnordered,
       [](bool faulty, Outcome* outcome) {
         const Floats x(Counted(kCount)), y(kCount);
         const Pinned host;
         Streams s;
         PlusOne(s.a, x.at(), y.at());
         cudaMemcpyAsync(host.at, y.at(), kBytes, cudaMemcpyDeviceToHost, faulty ? s.b : s.a);
         cudaStreamSynchronize(faulty ? s.b : s.a);
         outcome->got = host.Get();
         outcome->wanted = CountedFrom(1);
       }},
  };
}

void FreedInUse(bool faulty, Outcome* outcome) {
  const Floats x(Counted(kCount)), y(kCount);
  void* memory = nullptr;
  cudaMalloc(&memory, kBytes);
  auto* const between = static_cast<float*>(memory);
  Streams s;
  PlusOne(s.a, x.at(), between);
  PlusOne(s.a, between, y.at());
  if (!faulty) cudaStreamSynchronize(s.a);
  cudaFree(between);
  cudaStreamSynchronize(s.a);
  outcome->got = y.Get();
  outcome->wanted = CountedFrom(2);
}

void GivenFreed(bool faulty, Outcome* /*outcome*/) {
  const Floats y(kCount);
  void* memory = nullptr;
  cudaMalloc(&memory, kBytes);
  if (faulty) cudaFree(memory);
  PlusOne(nullptr, static_cast<float*>(memory), y.at());
  cudaDeviceSynchronize();
  if (!faulty) cudaFree(memory);
}

void ReadsBeyondTheEnd(bool faulty, Outcome* /*outcome*/) {
  const Floats x(Counted(kCount));
  std::vector<float> host(kCount + 1);
  cudaMemcpy(host.data(), x.at(), kBytes + (faulty ? 1 : 0), cudaMemcpyDeviceToHost);
}

// Memory that is wrong for what is done with it.
void OfKind(bool faulty, Outcome* /*outcome*/, void (*use)(void* wrong, void* right)) {
  const Floats x(kCount);
  std::vector<float> host(kCount);
  use(faulty ? host.data() : x.at(), x.at());
  cudaDeviceSynchronize();
}
SeededFault Kind(const char* name, const char* message, void (*use)(void* wrong, void* right)) {
  return {name, message, [=](bool faulty, Outcome* o) { OfKind(faulty, o, use); }};
}

void Frees(bool faulty, void (*wrong)(void* memory)) {
  void* memory = nullptr;
  cudaMalloc(&memory, kBytes);
  if (faulty) wrong(memory);
  cudaFree(memory);
}
SeededFault Freeing(const char* name, const char* message, void (*wrong)(void* memory)) {
  return {name, message, [=](bool faulty, Outcome* /*outcome*/) { Frees(faulty, wrong); }};
}

std::vector<SeededFault> OfMemory() {
  return {
      {"FreedInUse", "frees memory that launch", FreedInUse},
      {"GivenFreed", "is given freed memory", GivenFreed},
      {"CopyBeyondTheEnd", "reads 1 bytes beyond the end of allocation", ReadsBeyondTheEnd},
      Kind("KernelOfHostMemory", "is given pageable host memory",
           [](void* wrong, void* right) {
             PlusOne(nullptr, static_cast<float*>(wrong), static_cast<float*>(right));
           }),
      Kind("MemsetOfHostMemory", "writes memory that is not the device's",
           [](void* wrong, void* /*right*/) { cudaMemset(wrong, 0, kBytes); }),
      Kind("CopyInAnotherDirection", "from device memory to pageable host memory and says",
           [](void* wrong, void* right) {
             cudaMemcpy(wrong, static_cast<float*>(right) + kCount / 2, kBytes / 2,
                        cudaMemcpyDeviceToDevice);
           }),
      Freeing("FreedTwice", "is freed twice", [](void* memory) { cudaFree(memory); }),
      Freeing("FreedInside", "that was not allocated",
              [](void* memory) { cudaFree(static_cast<float*>(memory) + 1); }),
      Freeing("FreedAsHostMemory", "is freed as pinned host memory",
              [](void* memory) { cudaFreeHost(memory); }),
      {"RowsTooClose", "has rows of 8 bytes that lie 4 apart",
       [](bool faulty, Outcome* /*outcome*/) {
         const Floats x(kCount);
         cudaMemset2DAsync(x.at(), faulty ? 4 : 16, 0, 8, 3);
         cudaDeviceSynchronize();
       }},
      {"NotWritten", "",
       [](bool faulty, Outcome* outcome) {
         const Floats x(kCount), y(kCount);
         if (!faulty) cudaMemset(x.at(), 0, kBytes);
         PlusOne(nullptr, x.at(), y.at());
         outcome->got = y.Get();
         outcome->wanted.assign(kCount, 1.0f);
       }},
  };
}

void StreamDestroyed(bool faulty, Outcome* /*outcome*/) {
  const Floats x(kCount);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  if (faulty) cudaStreamDestroy(stream);
  cudaMemsetAsync(x.at(), 0, kBytes, stream);
  if (!faulty) cudaStreamDestroy(stream);
  cudaDeviceSynchronize();
}

void EventDestroyed(bool faulty, Outcome* /*outcome*/) {
  cudaEvent_t event;
  cudaEventCreate(&event);
  if (faulty) cudaEventDestroy(event);
  cudaEventRecord(event);
  if (!faulty) cudaEventDestroy(event);
  cudaDeviceSynchronize();
}

void UntimedEvents(bool faulty, Outcome* /*outcome*/) {
  cudaEvent_t from, to;
  cudaEventCreateWithFlags(&from, faulty ? cudaEventDisableTiming : cudaEventDefault);
  cudaEventCreate(&to);
  cudaEventRecord(from);
  cudaEventRecord(to);
  cudaEventSynchronize(to);
  float ms = -1;
  cudaEventElapsedTime(&ms, from, to);
  cudaEventDestroy(from);
  cudaEventDestroy(to);
}

void CallsFromHostFunction(bool faulty, Outcome* /*outcome*/) {
  Streams s;
  const auto call = [](void* data) {
    if (data != nullptr) cudaGetDeviceCount(static_cast<int*>(data));
    if (data != nullptr) cudaStreamQuery(nullptr);
  };
  int count = 0;
  cudaLaunchHostFunc(s.a, call, faulty ? &count : nullptr);
  cudaStreamSynchronize(s.a);
}

std::vector<SeededFault> OfHandles() {
  return {
      {"StreamDestroyed", "which is destroyed", StreamDestroyed},
      {"EventDestroyed", "an event that is destroyed", EventDestroyed},
      {"UntimedEvents", "which has no time", UntimedEvents},
      {"CallsFromHostFunction", "by a function of cudaLaunchHostFunc", CallsFromHostFunction},
  };
}

// A capture of which `wrong` is a part. Without it the graph gives y = x + 1.
SeededFault Capturing(const char* name, const char* message,
                      void (*wrong)(const Streams& s, float* x, float* y)) {
  return {name, message, [=](bool faulty, Outcome* outcome) {
            const Floats x(Counted(kCount)), y(kCount);
            Streams s;
            const cudaError_t error = Captured(s.a, [&] {
              PlusOne(s.a, x.at(), y.at());
              if (faulty) wrong(s, x.at(), y.at());
            });
            EXPECT_EQ(error == cudaSuccess, !faulty);
            outcome->got = y.Get();
            outcome->wanted = CountedFrom(1);
          }};
}

// Forks to another stream and joins it again, unless something is left out.
void ForkAndJoin(bool fork, bool join, Outcome* outcome) {
  const Floats x(Counted(kCount)), y(kCount), z(kCount);
  Streams s;
  Captured(s.a, [&] {
    if (!fork) cudaEventRecord(s.first, s.a);
    PlusOne(s.a, x.at(), y.at());
    if (fork) cudaEventRecord(s.first, s.a);
    cudaStreamWaitEvent(s.b, s.first);
    PlusOne(s.b, y.at(), z.at());
    cudaEventRecord(s.second, s.b);
    if (join) cudaStreamWaitEvent(s.a, s.second);
  });
  outcome->got = z.Get();
  outcome->wanted = CountedFrom(2);
}

void GraphOfFreedMemory(bool faulty, Outcome* /*outcome*/) {
  const Floats x(Counted(kCount));
  void* memory = nullptr;
  cudaMalloc(&memory, kBytes);
  Streams s;
  Captured(s.a, [&] {
    PlusOne(s.a, x.at(), static_cast<float*>(memory));
    if (!faulty) return;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaThreadExchangeStreamCaptureMode(&mode);
    cudaFree(memory);
    cudaThreadExchangeStreamCaptureMode(&mode);
  });
  if (!faulty) cudaFree(memory);
}

void GraphDestroyed(bool faulty, Outcome* /*outcome*/) {
  Streams s;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamBeginCapture(s.a, cudaStreamCaptureModeGlobal);
  cudaStreamEndCapture(s.a, &graph);
  cudaGraphInstantiate(&exec, graph);
  cudaGraphDestroy(graph);
  if (faulty) cudaGraphExecDestroy(exec);
  cudaGraphLaunch(exec, s.a);
  if (!faulty) cudaGraphExecDestroy(exec);
}

std::vector<SeededFault> OfCaptures() {
  return {
      Capturing("CaptureSynchronizes", "waits for stream",
                [](const Streams& s, float*, float*) { cudaStreamSynchronize(s.a); }),
      Capturing("CaptureAllocates", "cudaMalloc is called while stream",
                [](const Streams&, float*, float*) {
                  void* memory = nullptr;
                  cudaMalloc(&memory, kBytes);
                }),
      Capturing("CaptureOfPageableMemory", "of pageable memory is captured",
                [](const Streams& s, float* x, float*) {
                  const std::vector<float> host = Counted(kCount);
                  cudaMemcpyAsync(x, host.data(), kBytes, cudaMemcpyHostToDevice, s.a);
                }),
      Capturing("CaptureWaitsForOutside", "recorded outside of the capture",
                [](const Streams& s, float*, float*) {
                  cudaEventRecord(s.first, s.b);
                  cudaStreamWaitEvent(s.a, s.first);
                }),
      Capturing("CaptureAsksForEvent", "which was recorded in a capture",
                [](const Streams& s, float*, float*) {
                  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
                  cudaThreadExchangeStreamCaptureMode(&mode);
                  cudaEventRecord(s.first, s.a);
                  cudaEventQuery(s.first);
                  cudaThreadExchangeStreamCaptureMode(&mode);
                }),
      Capturing("CapturesMeet", "would join two captures",
                [](const Streams& s, float*, float*) {
                  cudaStreamBeginCapture(s.b, cudaStreamCaptureModeGlobal);
                  cudaEventRecord(s.first, s.b);
                  cudaStreamWaitEvent(s.a, s.first);
                  cudaGraph_t graph;
                  cudaStreamEndCapture(s.b, &graph);
                }),
      Capturing("CaptureEndsElsewhere", "but the capture began with",
                [](const Streams& s, float*, float*) {
                  cudaEventRecord(s.first, s.a);
                  cudaStreamWaitEvent(s.b, s.first);
                  cudaGraph_t graph;
                  cudaStreamEndCapture(s.b, &graph);
                }),
      {"CaptureOfBlockingStream", "uses the default stream",
       [](bool faulty, Outcome* /*outcome*/) {
         const Floats x(kCount);
         cudaStream_t stream;
         cudaStreamCreate(&stream);
         Captured(stream, [&] { cudaMemsetAsync(x.at(), 0, kBytes, faulty ? nullptr : stream); });
         cudaStreamDestroy(stream);
       }},
      {"CaptureNotJoined", "which does not wait for stream",
       [](bool faulty, Outcome* outcome) { ForkAndJoin(true, !faulty, outcome); }},
      {"CaptureForksTooEarly", kUnordered,
       [](bool faulty, Outcome* outcome) { ForkAndJoin(!faulty, true, outcome); }},
      {"GraphOfFreedMemory", "freed memory", GraphOfFreedMemory},
      {"GraphDestroyed", "a graph that is destroyed", GraphDestroyed},
  };
}

std::vector<SeededFault> All() {
  std::vector<SeededFault> all;
  for (const auto& some : {OfOrder(), OfMemory(), OfHandles(), OfCaptures()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

class RuntimeFaults : public testing::TestWithParam<SeededFault> {};

TEST_P(RuntimeFaults, AreFound) { ExpectFound(GetParam()); }

INSTANTIATE_TEST_SUITE_P(, RuntimeFaults, testing::ValuesIn(All()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mgc::cuda
